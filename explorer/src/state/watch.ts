// Looking at something again and again, for pages that show what changes by itself.

export interface Watched<T> {
  read: (signal: AbortSignal) => Promise<T>;
  seen: (found: T) => void;
  failed: (error: unknown) => void;
  /** Milliseconds from the end of one look to the next. */
  every: () => number;
}

export interface Watch {
  /** Looks at once, because something is known to have changed. */
  wake: () => void;
  stop: () => void;
}

/**
 * Looks at once and then again and again, also after a look that failed: servers are restarted. One look is under way
 * at a time: a new one gives up the one before it, which knows less and might be answered later.
 */
export function watch<T>(watched: Watched<T>): Watch {
  let newest = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = () => {
    newest.abort();
    clearTimeout(timer);
  };
  const look = async () => {
    stop();
    const mine = (newest = new AbortController());
    try {
      const found = await watched.read(mine.signal);
      if (mine.signal.aborted) return;
      watched.seen(found);
    } catch (error) {
      if (mine.signal.aborted) return;
      watched.failed(error);
    }
    timer = setTimeout(() => void look(), watched.every());
  };
  void look();
  return { wake: () => void look(), stop };
}

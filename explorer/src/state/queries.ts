// Queries that this browser keeps: the open ones of each container, those that were saved under a name, and those that
// were run before.

export interface OpenQuery {
  id: number;
  text: string;
  /** Under which it was saved; null until it is. */
  name: string | null;
}

export interface OpenQueries {
  list: OpenQuery[];
  active: number;
}

export interface SavedQuery {
  container: string;
  name: string;
  text: string;
}

export interface PastQuery {
  container: string;
  text: string;
  at: number;
  charge: number;
  rows: number;
}

const OPEN = "orrery.queries.";
const SAVED = "orrery.saved";
const HISTORY = "orrery.history";
const HISTORY_MOST = 100;
/** Queries that are open at the same time; each has its rows. */
export const OPEN_MOST = 12;
const SAVED_MOST = 500;
const FIRST = "SELECT * FROM c";

const isOpenQuery = (one: unknown): one is OpenQuery => {
  const query = one as OpenQuery | null;
  return typeof query === "object" && query !== null && Number.isInteger(query.id) && typeof query.text === "string";
};

const named = (query: OpenQuery): OpenQuery => ({ ...query, name: typeof query.name === "string" ? query.name : null });

export function openQueries(container: string): OpenQueries {
  const kept = read<Partial<OpenQueries>>(OPEN + container, {});
  const list = Array.isArray(kept.list) ? kept.list.filter(isOpenQuery).slice(0, OPEN_MOST).map(named) : [];
  const [first] = list;
  if (first === undefined) return { list: [{ id: 1, text: FIRST, name: null }], active: 1 };
  return { list, active: list.some(({ id }) => id === kept.active) ? (kept.active as number) : first.id };
}

export function keepOpenQueries(container: string, queries: OpenQueries): void {
  const list = queries.list.map((query) => ({ ...query, text: query.text.slice(0, 100_000) }));
  keep(OPEN + container, JSON.stringify({ ...queries, list }));
}

/** One more, beside those that are open. */
export function withNewQuery({ list }: OpenQueries, text = FIRST, name: string | null = null): OpenQueries {
  const id = Math.max(0, ...list.map((query) => query.id)) + 1;
  return { list: [...list, { id, text, name }], active: id };
}

/** Without one of them; its neighbour takes its place, and the last one leaves a new one behind. */
export function withoutQuery({ list, active }: OpenQueries, id: number): OpenQueries {
  const at = list.findIndex((query) => query.id === id);
  const left = list.filter((query) => query.id !== id);
  if (left.length === 0) return withNewQuery({ list: [], active: 0 });
  const next = active === id ? left[Math.min(at, left.length - 1)]?.id ?? 0 : active;
  return { list: left, active: next };
}

const allSaved = () => read<SavedQuery[]>(SAVED, []);

export const savedQueries = (container: string) => allSaved().filter((query) => query.container === container);

/** Saves a query over the one of the same name, if there is one. */
export function saveQuery(query: SavedQuery): void {
  const others = allSaved().filter((one) => one.container !== query.container || one.name !== query.name);
  const all = [...others, query].sort((a, b) => a.name.localeCompare(b.name));
  keep(SAVED, JSON.stringify(all.slice(0, SAVED_MOST)));
}

export function forgetSavedQuery(container: string, name: string): void {
  keep(SAVED, JSON.stringify(allSaved().filter((one) => one.container !== container || one.name !== name)));
}

export const pastQueries = () => read<PastQuery[]>(HISTORY, []);

export function keepPastQuery(query: PastQuery): void {
  const others = pastQueries().filter((past) => past.text !== query.text || past.container !== query.container);
  keep(HISTORY, JSON.stringify([{ ...query, text: query.text.slice(0, 20_000) }, ...others].slice(0, HISTORY_MOST)));
}

export const forgetPastQueries = () => localStorage.removeItem(HISTORY);

/** What is kept under a name, if it is of the kind that is expected: an array or an object. */
function read<T extends object>(name: string, otherwise: T): T {
  try {
    const kept = JSON.parse(localStorage.getItem(name) ?? "null") as unknown;
    return typeof kept === "object" && kept !== null && Array.isArray(kept) === Array.isArray(otherwise) ? (kept as T) : otherwise;
  } catch {
    return otherwise;
  }
}

/** A full store is no reason to stop working. */
function keep(name: string, text: string): void {
  try {
    localStorage.setItem(name, text);
  } catch {
    console.warn("The browser's store is full; this is not kept:", name);
  }
}

// Questions that stop everything else. The browser's own dialog keeps the focus inside and closes with Escape.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

interface DialogProps {
  title: string;
  className?: string;
  onClose: () => void;
  children: ComponentChildren;
}

export function Dialog(props: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  // Closed while it is still in the page: only then the browser gives the focus back to what had it before.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={element}
      class={props.className}
      aria-label={props.title}
      onCancel={(event) => {
        event.preventDefault();
        props.onClose();
      }}
    >
      <h2>{props.title}</h2>
      {props.children}
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  /** What will be gone; shown before the question. */
  children: ComponentChildren;
  action: string;
  /** Must be typed before the action can be taken, for what cannot be undone and is large. */
  typed?: string;
  onConfirm: () => Promise<void> | void;
  onClose: () => void;
}

export function Confirm(props: ConfirmProps) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const allowed = props.typed === undefined || text === props.typed;
  const act = async (event: Event) => {
    event.preventDefault();
    if (!allowed || busy) return;
    setBusy(true);
    try {
      await props.onConfirm();
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <form onSubmit={(event) => void act(event)}>
        {props.children}
        {props.typed !== undefined && (
          <label class="field">
            <span>Type its name to confirm</span>
            <input value={text} onInput={(event) => setText(event.currentTarget.value)} autocomplete="off" spellcheck={false} />
          </label>
        )}
        <div class="actions">
          <button type="button" onClick={props.onClose}>
            Keep it
          </button>
          <button type="submit" class="danger" disabled={!allowed || busy}>
            {props.action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

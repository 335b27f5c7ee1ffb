// The scripts of a container: what the server has, what is typed over it, and how the one becomes the other.

import { useEffect, useRef, useState } from "preact/hooks";
import { dropScriptDraft, keepScriptDraft, scriptDraft } from "../state/drafts.ts";
import { explain, fail, say } from "../state/notices.ts";
import { client } from "../state/session.ts";
import { deleteScript, linkOf, listScripts, saveScript, type Container, type Place, type Script, type ScriptKind } from "../wire/resources.ts";
import { nameError } from "./names.ts";

export interface Open {
  kind: ScriptKind;
  /** As the server has it, or what a new one begins with. */
  script: Script;
  isNew: boolean;
}

type Lists = Record<ScriptKind, Script[]>;

/** The name of what is being edited. A new script has no id yet. */
export const draftName = (place: Place, open: Open) => `${linkOf(place)}/${open.kind}/${open.isNew ? "" : open.script.id}`;

const isSame = (one: Open | null, other: Open) =>
  one !== null && one.kind === other.kind && one.isNew === other.isNew && (one.isNew || one.script.id === other.script.id);

/** The scripts of a container as the server has them, and the one that is open. */
export function useScripts(place: Place) {
  const [lists, setLists] = useState<Lists | null>(null);
  const [open, setOpen] = useState<Open | null>(null);
  const turn = useRef(0);
  const refresh = async () => {
    const mine = (turn.current += 1);
    try {
      const list = (kind: ScriptKind) => listScripts(client(), place, kind);
      const [sprocs, triggers, udfs] = await Promise.all([list("sprocs"), list("triggers"), list("udfs")]);
      // A list that was asked for before the last save does not know what that saved.
      if (turn.current !== mine) return;
      const found: Lists = { sprocs, triggers, udfs };
      setLists(found);
      setOpen((now) => {
        const script = now === null || now.isNew ? undefined : found[now.kind].find(({ id }) => id === now.script.id);
        return now === null || script === undefined ? now : { ...now, script };
      });
    } catch (error) {
      fail("Cannot list the scripts", error);
    }
  };
  useEffect(() => void refresh(), []);
  return {
    lists,
    open,
    setOpen,
    refresh,
    /** A user who has gone on to another script while this one was saved stays there. */
    saved: (was: Open, script: Script) => {
      const next: Open = { kind: was.kind, script, isNew: false };
      setOpen((now) => (isSame(now, was) || isSame(now, next) ? next : now));
      setLists((old) => old && { ...old, [was.kind]: old[was.kind].map((one) => (one.id === script.id ? script : one)) });
      void refresh();
    },
  };
}

export interface ScriptEditorProps {
  place: Place;
  container: Container;
  open: Open;
  onSaved: (script: Script) => void;
  onDiscarded: () => void;
  onClose: () => void;
  onDeleted: () => void;
}

/** What was typed, kept as a draft until it is saved; without a draft it is what the server has. */
export function useScript(props: ScriptEditorProps) {
  const { place, open } = props;
  const name = draftName(place, open);
  const now = () => scriptDraft(name) ?? { script: open.script, base: open.script };
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  // The state is as old as the rendering, and a held key saves again before the next one.
  const saving = useRef(false);
  const { script } = now();
  const ready = script.id !== "" && nameError(script.id) === "" && script.body.trim() !== "";

  /** What was typed since the text was sent stays, as a draft over what was saved. */
  const settle = (saved: Script, sent: Script) => {
    const { _etag, ...typed } = now().script;
    dropScriptDraft(name);
    const next: Script = { ...saved, ...typed, id: saved.id };
    const untouched = typed.body === sent.body && typed.triggerType === sent.triggerType && typed.triggerOperation === sent.triggerOperation;
    if (!untouched) keepScriptDraft(draftName(place, { ...open, script: saved, isNew: false }), { script: next, base: saved });
    props.onSaved(saved);
  };
  const save = async () => {
    if (!ready || saving.current) return;
    saving.current = true;
    setBusy(true);
    try {
      const sent = now().script;
      const saved = await saveScript(client(), place, open.kind, sent, open.isNew);
      setProblem("");
      say(`Saved ${saved.id}`);
      settle(saved, sent);
    } catch (error) {
      setProblem(explain(error));
    } finally {
      saving.current = false;
      setBusy(false);
    }
  };
  const remove = async () => {
    try {
      await deleteScript(client(), place, open.kind, open.script.id);
      dropScriptDraft(name);
      say(`Deleted ${open.script.id}`);
      props.onDeleted();
    } catch (error) {
      fail(`Cannot delete ${open.script.id}`, error);
    }
  };
  return {
    script,
    isDraft: scriptDraft(name) !== undefined,
    ready,
    problem,
    busy,
    change: (next: Partial<Script>) => {
      const { script, base } = now();
      keepScriptDraft(name, { script: { ...script, ...next }, base });
    },
    save,
    remove,
    discard: () => {
      dropScriptDraft(name);
      setProblem("");
      props.onDiscarded();
    },
  };
}

// An editor as a component; CodeMirror itself is loaded when the first one is shown.

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Mistake } from "../wire/client.ts";
import type { Language, LiveEditor } from "./editor-core.ts";

const core = () => import("./editor-core.ts");

interface EditorProps {
  label: string;
  text: string;
  language: Language;
  readOnly?: boolean;
  autoFocus?: boolean;
  className?: string;
  onChange?: (text: string) => void;
  onRun?: () => void;
  onSave?: () => void;
  properties?: () => Promise<string[]> | string[];
  /** What is wrong with the text as it is now; underlined. */
  mistakes?: Mistake[];
}

export function Editor(props: EditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const live = useRef<LiveEditor | null>(null);
  // The editor lives longer than one rendering, so it reaches the newest functions through this.
  const latest = useRef(props);
  latest.current = props;
  // What the editor has said comes back as a property, perhaps when it holds something newer already; only what it
  // has not said itself is put into it.
  const said = useRef<string[]>([]);

  useEffect(() => {
    const element = host.current;
    if (element === null) return;
    let gone = false;
    void core().then(({ createEditor }) => {
      if (gone) return;
      const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
      live.current = createEditor(root, {
        label: props.label,
        text: latest.current.text,
        language: props.language,
        readOnly: props.readOnly ?? false,
        onChange: (text) => {
          said.current.push(text);
          latest.current.onChange?.(text);
        },
        onRun: () => latest.current.onRun?.(),
        onSave: () => latest.current.onSave?.(),
        properties: () => latest.current.properties?.() ?? [],
      });
      live.current.underline(latest.current.mistakes ?? []);
      // It comes late, when the person may be busy with something else, as on the way over the tabs.
      if (props.autoFocus === true && document.activeElement === document.body) live.current.focus();
    });
    return () => {
      gone = true;
      live.current?.destroy();
      live.current = null;
    };
  }, [props.language, props.readOnly, props.label]);

  // In the same breath as the rendering: a key that is pressed between the two would be overwritten.
  useLayoutEffect(() => {
    const at = said.current.lastIndexOf(props.text);
    if (at >= 0) {
      said.current.splice(0, at + 1);
      return;
    }
    said.current = [];
    live.current?.show(props.text);
  }, [props.text]);

  useEffect(() => live.current?.underline(props.mistakes ?? []), [props.mistakes]);

  return <div ref={host} class={`editor ${props.className ?? ""}`} data-editor={props.label} />;
}

export function Diff(props: { theirs: string; mine: string; onChange: (text: string) => void }) {
  const host = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    const element = host.current;
    if (element === null) return;
    let live: LiveEditor | null = null;
    let gone = false;
    void core().then(({ createDiff }) => {
      if (gone) return;
      const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
      live = createDiff(root, props.theirs, latest.current.mine, (text) => latest.current.onChange(text));
    });
    return () => {
      gone = true;
      live?.destroy();
    };
  }, [props.theirs]);
  return <div ref={host} class="editor diff" data-editor="difference" />;
}

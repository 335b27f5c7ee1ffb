// CodeMirror, set up for the three languages of the page. Loaded when the first editor is shown.
//
// Editors live in shadow roots: there CodeMirror adopts style sheets instead of writing style elements, which the
// page's content policy forbids.

import { autocompletion, closeBrackets, closeBracketsKeymap, closeCompletion, completionKeymap, type CompletionSource } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import { json, jsonParseLinter } from "@codemirror/lang-json";
import { sql } from "@codemirror/lang-sql";
import { bracketMatching, foldGutter, foldKeymap, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { lintKeymap, linter, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { MergeView } from "@codemirror/merge";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState, Prec, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { Mistake } from "../wire/client.ts";
import { completeQuery, dialect } from "./query-language.ts";

export type Language = "sql" | "json" | "javascript";

export interface EditorOptions {
  label: string;
  text: string;
  language: Language;
  readOnly: boolean;
  onChange: (text: string) => void;
  onRun: () => void;
  onSave: () => void;
  /** Property paths that queries may be completed with. */
  properties: () => Promise<string[]> | string[];
}

/** Longer texts are shown without checks on every key. */
const LINT_CHARACTERS_MAX = 1_000_000;

const theme = EditorView.theme({
  "&": { height: "100%", fontSize: "13px", color: "var(--text)", backgroundColor: "var(--field)" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--field)", color: "var(--soft)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--active-line)" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--selection)",
  },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { color: "inherit", opacity: "0.85" },
  ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--text)" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)" },
  ".cm-matchingBracket": { backgroundColor: "var(--selection)" },
  // Its own underline is an image inside the style sheet, which the page's content policy forbids.
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)", textUnderlineOffset: "3px" },
  ".cm-tooltip-lint": { maxWidth: "32rem", whiteSpace: "pre-wrap" },
  ".cm-changedLine": { backgroundColor: "var(--changed) !important" },
  ".cm-changedText": { background: "var(--changed-text) !important" },
});

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--code-name)" },
  { tag: [tags.standard(tags.name), tags.function(tags.variableName)], color: "var(--code-function)" },
  { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
  { tag: tags.invalid, color: "var(--bad)" },
]);

function languageOf(options: EditorOptions): Extension {
  switch (options.language) {
    case "sql": {
      const source: CompletionSource = async (context) => completeQuery(context, await options.properties());
      return [sql({ dialect }), EditorView.lineWrapping, autocompletion({ override: [source] })];
    }
    case "json": {
      const check = jsonParseLinter();
      const lint = linter((view) => (view.state.doc.length === 0 || view.state.doc.length > LINT_CHARACTERS_MAX ? [] : check(view)));
      return [json(), options.readOnly ? [] : lint];
    }
    case "javascript":
      return [javascript(), autocompletion()];
  }
}

/**
 * Typing over a selection is done here and not by the browser: that would keep the colours of what was selected as
 * inline styles, which the content policy forbids.
 */
const typeOver = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { main } = view.state.selection;
    if (event.inputType !== "insertText" || event.data === null || main.empty || view.composing || view.state.readOnly) return false;
    const text = event.data;
    const insert = () => view.state.update(view.state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
    event.preventDefault();
    const handlers = view.state.facet(EditorView.inputHandler);
    if (!handlers.some((handler) => handler(view, main.from, main.to, text, insert))) view.dispatch(insert());
    return true;
  },
});

function common(label: string, readOnly: boolean): Extension {
  return [
    lineNumbers(),
    foldGutter(),
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    highlightActiveLine(),
    highlightSelectionMatches(),
    typeOver,
    search({ top: true }),
    syntaxHighlighting(colours),
    theme,
    // Tab leaves the editor, so that the page can be used without a mouse; Ctrl-] and Ctrl-[ indent.
    keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, ...completionKeymap, ...lintKeymap]),
    EditorView.contentAttributes.of({ "aria-label": label, ...(readOnly ? { "aria-readonly": "true" } : {}), tabindex: "0" }),
    EditorState.readOnly.of(readOnly),
    EditorView.editable.of(!readOnly),
  ];
}

export interface LiveEditor {
  /** Replaces the text if it is another. */
  show(text: string): void;
  /** Marks what is wrong; with nothing, nothing is marked any more. */
  underline(mistakes: Mistake[]): void;
  focus(): void;
  destroy(): void;
}

export function createEditor(root: ShadowRoot, options: EditorOptions): LiveEditor {
  const run = (action: () => void) => (view: EditorView) => {
    closeCompletion(view);
    action();
    return true;
  };
  const commands = Prec.highest(
    keymap.of([
      { key: "Mod-Enter", run: run(options.onRun) },
      { key: "Mod-s", run: run(options.onSave), preventDefault: true },
    ]),
  );
  const heard = EditorView.updateListener.of((update) => {
    if (update.docChanged) options.onChange(update.state.doc.toString());
  });
  // A list of completions that is still on its way must not appear after the editor was left.
  const left = EditorView.domEventHandlers({
    blur: (_event, view) => {
      setTimeout(() => closeCompletion(view), 0);
      return false;
    },
  });
  const extensions = [commands, left, languageOf(options), common(options.label, options.readOnly), heard];
  const view = new EditorView({ state: EditorState.create({ doc: options.text, extensions }), parent: root, root });
  return {
    show(text) {
      if (view.state.doc.toString() === text) return;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
    },
    underline: (mistakes) => view.dispatch(setDiagnostics(view.state, diagnosticsOf(mistakes, view.state.doc.length))),
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}

/** A mistake at the end of the text, or one without extent, is shown at the character before it. */
function diagnosticsOf(mistakes: Mistake[], length: number): Diagnostic[] {
  const diagnostics = mistakes.map(({ start, end, message }): Diagnostic => {
    const to = Math.min(length, Math.max(end, start + 1));
    return { from: Math.max(0, Math.min(start, to - 1)), to, severity: "error", message };
  });
  return diagnostics.sort((a, b) => a.from - b.from);
}

/** Two texts side by side with what differs; the right one can be edited. */
export function createDiff(root: ShadowRoot, theirs: string, mine: string, onChange: (text: string) => void): LiveEditor {
  const heard = EditorView.updateListener.of((update) => {
    if (update.docChanged) onChange(update.state.doc.toString());
  });
  const merge = new MergeView({
    a: { doc: theirs, extensions: [json(), common("The server's version", true)] },
    b: { doc: mine, extensions: [json(), common("Your version", false), heard] },
    parent: root,
    root,
    collapseUnchanged: { margin: 3, minSize: 6 },
  });
  return { show: () => undefined, underline: () => undefined, focus: () => merge.b.focus(), destroy: () => merge.destroy() };
}

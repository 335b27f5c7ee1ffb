// One question of a form: its name, a sentence that explains it, and what is wrong with the answer so far.

import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface FieldProps {
  label: string;
  /** What it means, in a sentence. */
  help: ComponentChildren;
  error?: string | undefined;
  children: (attributes: { id: string; "aria-describedby": string; "aria-invalid": boolean }) => ComponentChildren;
}

export function Field(props: FieldProps) {
  const id = useId();
  const wrong = props.error !== undefined && props.error !== "";
  return (
    <div class={`field ${wrong ? "wrong" : ""}`}>
      <label for={id}>{props.label}</label>
      {props.children({ id, "aria-describedby": `${id}-help`, "aria-invalid": wrong })}
      <p class="help" id={`${id}-help`}>
        {wrong && <strong class="error">{props.error} </strong>}
        {props.help}
      </p>
    </div>
  );
}

interface ChoiceProps<T extends string> {
  label: string;
  help: ComponentChildren;
  options: readonly { name: T; title: string; note?: string }[];
  chosen: T;
  onChoose: (name: T) => void;
}

/** One of a few, each with a sentence. */
export function Choice<T extends string>(props: ChoiceProps<T>) {
  const id = useId();
  return (
    <fieldset class="field">
      <legend>{props.label}</legend>
      <div class="choices">
        {props.options.map((option) => (
          <label key={option.name} class={option.name === props.chosen ? "chosen" : ""}>
            <input
              type="radio"
              name={id}
              value={option.name}
              checked={option.name === props.chosen}
              onChange={() => props.onChoose(option.name)}
            />
            <span>
              {option.title}{" "}
              {option.note !== undefined && <small>{option.note}</small>}
            </span>
          </label>
        ))}
      </div>
      <p class="help">{props.help}</p>
    </fieldset>
  );
}

import { useState } from "preact/hooks";
import { forgetSavedQuery, savedQueries } from "../state/queries.ts";

/** Queries that were saved under a name for this container, in this browser. */
export function SavedQueries(props: { container: string; onOpen: (text: string, name: string) => void }) {
  const [, setForgotten] = useState(0);
  const saved = savedQueries(props.container);
  return (
    <div class="scroll pad" tabIndex={0} role="region" aria-label="Saved queries">
      {saved.length === 0 && <p class="soft">None yet. Save query (Ctrl S in the editor) keeps one under a name.</p>}
      <ul class="plain-list">
        {saved.map(({ name, text }) => (
          <li key={name} class="row-of">
            <button type="button" class="past grow" onClick={() => props.onOpen(text, name)}>
              <strong>
                <bdi>{name}</bdi>
              </strong>
              <code>{text.slice(0, 300)}</code>
            </button>
            <button
              type="button"
              class="quiet"
              aria-label={`Forget the query ${name}`}
              onClick={() => {
                forgetSavedQuery(props.container, name);
                setForgotten((count) => count + 1);
              }}
            >
              Forget
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

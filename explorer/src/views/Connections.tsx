// Connection strings, with a button that copies them.

import { fail, say } from "../state/notices.ts";
import { server, session } from "../state/session.ts";

/** How clients of the Table API connect; nothing where the server does without that API. */
export function TableConnection(props: { secure?: boolean; shown?: boolean }) {
  const [current, known] = [session.value, server.value];
  const port = known?.ports.table;
  if (current === null || known === null || port === undefined) return null;
  const scheme = props.secure ?? location.protocol === "https:" ? "https" : "http";
  const text = (key: string) =>
    `DefaultEndpointsProtocol=${scheme};AccountName=${known.account};AccountKey=${key};` +
    `TableEndpoint=${scheme}://${location.hostname}:${port}/${known.account};`;
  const key = current.client.keyText;
  return (
    <>
      <h2>Connection string of the Table API</h2>
      <Copyable name="Table connection string" shown={text(props.shown === true ? key : "•".repeat(12))} text={text(key)} />
    </>
  );
}

export function Copyable(props: { name: string; shown: string; text: string }) {
  const copy = () => {
    copyText(props.text)
      .then(() => say(`Copied the ${props.name}`))
      .catch((error: unknown) => fail(`Cannot copy the ${props.name}; select the text instead`, error));
  };
  return (
    <div class="copyable">
      <pre tabIndex={0} aria-label={props.name}>
        {props.shown}
      </pre>
      <button type="button" onClick={copy} aria-label={`Copy the ${props.name}`}>
        Copy
      </button>
    </div>
  );
}

/** The clipboard is closed to pages that came over plain HTTP; the old way still works there. */
async function copyText(text: string): Promise<void> {
  if (window.isSecureContext) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (!copied) throw new Error("The browser does not allow it.");
}

import { useState } from "preact/hooks";
import { Field } from "../parts/Field.tsx";
import { explain } from "../state/notices.ts";
import { DEVELOPMENT_KEY, onLoopback, signIn } from "../state/session.ts";

export function SignIn() {
  const [key, setKey] = useState(onLoopback() ? DEVELOPMENT_KEY : "");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    try {
      // A whole connection string is as good as the key in it.
      await signIn(/AccountKey=([^;]+)/.exec(key)?.[1] ?? key);
    } catch (problem) {
      setError(explain(problem));
    } finally {
      setBusy(false);
    }
  };
  return (
    <main class="door">
      <form onSubmit={(event) => void submit(event)}>
        <h1>
          <img src="/_explorer/icon.svg" alt="" width="36" height="36" /> Orrery
        </h1>
        <Field
          label="Account key"
          error={error}
          help={
            onLoopback()
              ? "Filled in with the public development key, which works while the server runs on this machine without --key-file."
              : "The primary or secondary key of this server's key file, or a connection string. It stays in this tab."
          }
        >
          {(attributes) => (
            <input
              {...attributes}
              type="password"
              name="key"
              value={key}
              autocomplete="off"
              spellcheck={false}
              required
              onInput={(event) => setKey(event.currentTarget.value)}
            />
          )}
        </Field>
        <div class="actions">
          <button type="submit" class="primary" disabled={busy || key.trim() === ""}>
            {busy ? "Signing in…" : "Sign in"}
          </button>
        </div>
        <p class="help">
          <a href="/_explorer/emulator.pem" download="orrery.pem">
            Certificate authority
          </a>{" "}
          of this server's HTTPS, for clients to trust.
        </p>
      </form>
    </main>
  );
}

// How to connect: the connection string, and the first lines for each SDK.

import { useEffect, useState } from "preact/hooks";
import { Tabs } from "../parts/Tabs.tsx";
import { fail } from "../state/notices.ts";
import { hrefOf } from "../state/route.ts";
import { client, session } from "../state/session.ts";
import { readAlerts, type Alert } from "../wire/manage.ts";
import { Copyable, TableConnection } from "./Connections.tsx";

const LANGUAGES = [".NET", "Java", "JavaScript", "Python", "Go", "Rust"] as const;
type Language = (typeof LANGUAGES)[number];

/** As the README has them. Direct mode and Java need HTTPS. */
function sample(language: Language, endpoint: string, key: string): string {
  const secure = endpoint.startsWith("https:");
  switch (language) {
    case ".NET":
      return `var client = new CosmosClient("${endpoint}", "${key}"${secure ? "" : ",\n    new CosmosClientOptions { ConnectionMode = ConnectionMode.Gateway }"});`;
    case "Java":
      return `CosmosClient client = new CosmosClientBuilder()\n    .endpoint("${endpoint.replace(/^http:/, "https:")}")\n    .key("${key}")\n    .buildClient();`;
    case "JavaScript":
      return `import { CosmosClient } from "@azure/cosmos";\nconst client = new CosmosClient({ endpoint: "${endpoint}", key: "${key}" });`;
    case "Python":
      return `from azure.cosmos import CosmosClient\nclient = CosmosClient("${endpoint}", "${key}")`;
    case "Go":
      return `cred, _ := azcosmos.NewKeyCredential("${key}")\nclient, _ := azcosmos.NewClientWithKey("${endpoint}", cred, nil)`;
    case "Rust":
      return `use azure_data_cosmos::{AccountReference, CosmosClient, Region, RoutingStrategy};\n\nlet account = AccountReference::with_authentication_key("${endpoint}".parse()?, "${key}");\nlet client = CosmosClient::builder()\n    .build(account, RoutingStrategy::ProximityTo(Region::SOUTH_CENTRAL_US)).await?;`;
  }
}

export function Home() {
  const [language, setLanguage] = useState<Language>("JavaScript");
  const [secure, setSecure] = useState(location.protocol === "https:");
  const [shown, setShown] = useState(false);
  const current = session.value;
  if (current === null) return null;
  const endpoint = `${secure ? "https" : "http"}://${location.host}/`;
  const key = current.client.keyText;
  const hidden = shown ? key : "•".repeat(12);
  const connection = (secret: string) => `AccountEndpoint=${endpoint};AccountKey=${secret};`;
  return (
    <section class="page">
      <h1>Connect</h1>
      <p>
        Account <strong>{current.account.id}</strong>, {current.account.consistency} consistency, region {current.account.region}.
        Any Cosmos DB SDK works; direct mode, and Java in every mode, need HTTPS.
      </p>
      <AlertList />
      <div class="row-of">
        <label class="check">
          <input type="checkbox" checked={secure} onChange={(event) => setSecure(event.currentTarget.checked)} /> HTTPS
        </label>
        <label class="check">
          <input type="checkbox" checked={shown} onChange={(event) => setShown(event.currentTarget.checked)} /> Show the key
        </label>
        <a href="/_explorer/emulator.pem" download="orrery.pem">
          Download the certificate authority
        </a>
      </div>
      <h2>Connection string</h2>
      <Copyable name="connection string" shown={connection(hidden)} text={connection(key)} />
      <TableConnection secure={secure} shown={shown} />
      <h2>First line of a program</h2>
      <Tabs label="Language" tabs={LANGUAGES.map((name) => ({ name, title: name }))} chosen={language} onChoose={setLanguage} />
      <Copyable name={`${language} code`} shown={sample(language, endpoint, hidden)} text={sample(language, endpoint, key)} />
      {(secure || language === "Java") && (
        <p class="help">
          For HTTPS, let the client trust the certificate authority above; for example <code>NODE_EXTRA_CA_CERTS=orrery.pem</code>,{" "}
          <code>SSL_CERT_FILE=orrery.pem</code>, or a trust store of Java that it was imported into with <code>keytool</code>.
        </p>
      )}
    </section>
  );
}

/** What an operator should look at, of all containers. */
function AlertList() {
  const [alerts, setAlerts] = useState<Alert[]>([]);
  useEffect(() => {
    const control = new AbortController();
    const look = () =>
      readAlerts(client(), control.signal).then(setAlerts, (error: unknown) => fail("Cannot read the alerts", error));
    void look();
    const timer = setInterval(() => void look(), 10_000);
    return () => {
      control.abort();
      clearInterval(timer);
    };
  }, []);
  if (alerts.length === 0) return null;
  return (
    <>
      <h2>Alerts</h2>
      <ul class="alerts">
        {alerts.map((alert) => (
          <li key={`${alert.kind} ${alert.database} ${alert.container} ${alert.partition} ${JSON.stringify(alert.partitionKey)}`}>
            <a href={hrefOf({ page: "container", db: alert.database, coll: alert.container, tab: "partitions" })}>
              <bdi>{alert.database}</bdi> / <bdi>{alert.container}</bdi>
            </a>{" "}
            {alert.message}
          </li>
        ))}
      </ul>
    </>
  );
}

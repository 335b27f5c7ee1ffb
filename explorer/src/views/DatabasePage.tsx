import { useEffect, useState } from "preact/hooks";
import { Confirm } from "../parts/Dialog.tsx";
import { fail, say } from "../state/notices.ts";
import { go, hrefOf } from "../state/route.ts";
import { client, findOffer, openBranch, refreshTree, tree } from "../state/session.ts";
import { deleteDatabase, type Container } from "../wire/resources.ts";
import { isTable, TABLES_DATABASE } from "../wire/tables.ts";
import { TableConnection } from "./Connections.tsx";
import { numberText } from "./figures.ts";
import { ThroughputSettings } from "./ThroughputSettings.tsx";

export function DatabasePage(props: { db: string }) {
  const [deleting, setDeleting] = useState(false);
  const known = tree.value !== null;
  useEffect(() => openBranch(props.db, (error) => fail(`Cannot list the containers of ${props.db}`, error)), [known]);
  const branch = tree.value?.find((one) => one.database.id === props.db);
  if (tree.value === null) return <p class="soft pad">Loading…</p>;
  if (branch === undefined) {
    return (
      <section class="page">
        <h1>No such database</h1>
        <p>
          There is no database named <bdi>{props.db}</bdi>. It may have been deleted; choose another in the tree or create it.
        </p>
      </section>
    );
  }
  const containers = branch.containers ?? [];
  const isTables = props.db === TABLES_DATABASE;
  const offer = findOffer(branch.database._rid);
  const remove = async () => {
    try {
      await deleteDatabase(client(), props.db);
      setDeleting(false);
      say(`Deleted the database ${props.db}`);
      go({ page: "home" });
      await refreshTree();
    } catch (error) {
      fail(`Cannot delete the database ${props.db}`, error);
    }
  };
  return (
    <section class="page">
      <h1>
        <bdi>{props.db}</bdi>
      </h1>
      <div class="row-of">
        <button type="button" class="primary" onClick={() => go({ page: "new-container", db: props.db })}>
          {isTables ? "New table" : "New container"}
        </button>
        <button type="button" class="danger" onClick={() => setDeleting(true)}>
          Delete database
        </button>
      </div>
      {isTables && <TableConnection />}
      <h2>{isTables ? "Tables" : "Containers"}</h2>
      {containers.length === 0 ? (
        <p class="soft">None yet. A container holds items, spread over partitions by a key that you choose.</p>
      ) : (
        <ContainerTable db={props.db} containers={containers} />
      )}
      {offer !== undefined && (
        <>
          <h2>Shared throughput</h2>
          <ThroughputSettings key={String(offer["_etag"])} offer={offer} partitions={1} />
        </>
      )}
      {deleting && (
        <Confirm
          title="Delete this database?"
          action="Delete database"
          typed={props.db}
          onConfirm={remove}
          onClose={() => setDeleting(false)}
        >
          <p>
            <bdi>{props.db}</bdi> with its {containers.length} containers and all their items will be gone. This cannot be undone.
          </p>
        </Confirm>
      )}
    </section>
  );
}

function ContainerTable(props: { db: string; containers: Container[] }) {
  return (
    <table class="plain">
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Partition key</th>
          <th scope="col">Throughput</th>
        </tr>
      </thead>
      <tbody>
        {props.containers.map((one) => {
          const own = findOffer(one._rid)?.content;
          const auto = own?.offerAutopilotSettings;
          return (
            <tr key={one._rid}>
              <th scope="row">
                <a href={hrefOf({ page: "container", db: props.db, coll: one.id, tab: "items" })}>
                  <bdi>{one.id}</bdi>
                </a>
              </th>
              <td>{isTable(props.db, one) ? "PartitionKey" : one.partitionKey.paths.join(", ")}</td>
              <td>
                {own === undefined ? "shared" : auto ? `autoscale to ${numberText(auto.maxThroughput)} RU/s` : `${numberText(own.offerThroughput)} RU/s`}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

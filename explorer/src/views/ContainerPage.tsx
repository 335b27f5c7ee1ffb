import { useEffect } from "preact/hooks";
import { Tabs } from "../parts/Tabs.tsx";
import { fail } from "../state/notices.ts";
import { go, TABS, type Tab } from "../state/route.ts";
import { findContainer, openBranch, tree } from "../state/session.ts";
import { type Container, type Place } from "../wire/resources.ts";
import { isTable } from "../wire/tables.ts";
import { Advisor } from "./Advisor.tsx";
import { Entities } from "./Entities.tsx";
import { Items } from "./Items.tsx";
import { Partitions } from "./Partitions.tsx";
import { Query } from "./Query.tsx";
import { Scripts } from "./Scripts.tsx";
import { Settings } from "./Settings.tsx";

const TITLES: Record<Tab, string> = {
  items: "Items",
  query: "Query",
  scripts: "Scripts",
  settings: "Settings",
  partitions: "Partitions",
  advisor: "Advisor",
};

export function ContainerPage(props: { place: Place; tab: Tab }) {
  const { db, coll } = props.place;
  const container = findContainer(db, coll);
  const known = tree.value !== null;
  useEffect(() => openBranch(db, (error) => fail(`Cannot list the containers of ${db}`, error)), [db, known]);
  if (container === undefined) {
    const loading = tree.value === null || tree.value.some((one) => one.database.id === db && one.containers === undefined);
    if (loading) return <p class="soft pad">Loading…</p>;
    return (
      <section class="page">
        <h1>No such container</h1>
        <p>
          There is no container <bdi>{coll}</bdi> in <bdi>{db}</bdi>. It may have been deleted; choose another in the tree.
        </p>
      </section>
    );
  }
  const table = isTable(db, container);
  const titles = table ? { ...TITLES, items: "Entities" } : TITLES;
  return (
    <section class="container-page">
      <header class="head">
        <h1>
          <bdi class="soft">{db}</bdi> <span class="soft">/</span> <bdi>{coll}</bdi>
        </h1>
        <span class="soft">{table ? "table" : `key ${container.partitionKey.paths.join(", ")}`}</span>
        <Tabs
          label="Container"
          tabs={TABS.map((name) => ({ name, title: titles[name] }))}
          chosen={props.tab}
          onChoose={(tab) => go({ page: "container", db, coll, tab })}
        />
      </header>
      <div class="tab-body" role="tabpanel" aria-label={titles[props.tab]} key={container._rid}>
        <Body tab={props.tab} place={props.place} container={container} />
      </div>
    </section>
  );
}

function Body(props: { tab: Tab; place: Place; container: Container }) {
  switch (props.tab) {
    case "items":
      return isTable(props.place.db, props.container) ? <Entities {...props} /> : <Items {...props} />;
    case "query":
      return <Query {...props} />;
    case "scripts":
      return <Scripts {...props} />;
    case "settings":
      return <Settings {...props} />;
    case "partitions":
      return <Partitions {...props} />;
    case "advisor":
      return <Advisor {...props} />;
  }
}

// The whole page: a door while nobody is signed in, and behind it the tree and what is chosen in it.

import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { Notices } from "../parts/Notices.tsx";
import { fail } from "../state/notices.ts";
import { go, hrefOf, route, type Route } from "../state/route.ts";
import { keptKey, refreshOffers, refreshTree, session, signIn, signOut } from "../state/session.ts";
import { theme, toggleTheme } from "../state/theme.ts";
import { ContainerPage } from "./ContainerPage.tsx";
import { DatabasePage } from "./DatabasePage.tsx";
import { Home } from "./Home.tsx";
import { JobsPage } from "./JobsPage.tsx";
import { NewContainer } from "./NewContainer.tsx";
import { NewDatabase } from "./NewDatabase.tsx";
import { Shortcuts } from "./Shortcuts.tsx";
import { SignIn } from "./SignIn.tsx";
import { Tree } from "./Tree.tsx";

export function App() {
  const [returning, setReturning] = useState(keptKey() !== null);
  useEffect(() => {
    const key = keptKey();
    if (key === null) return;
    signIn(key)
      .catch((error: unknown) => fail("Cannot sign in with the key of this tab", error))
      .finally(() => setReturning(false));
  }, []);
  if (returning) return <p class="boot">Signing in…</p>;
  return (
    <>
      {session.value === null ? <SignIn /> : <Desk />}
      <Notices />
    </>
  );
}

function Desk() {
  const [shortcuts, setShortcuts] = useState(false);
  const [treeOpen, setTreeOpen] = useState(false);
  // On narrow pages the tree covers what it leads to while it is open or has the focus; it goes when something was chosen in it.
  useEffect(() => {
    setTreeOpen(false);
    const isInTree = document.getElementById("tree")?.contains(document.activeElement) === true;
    if (isInTree && matchMedia("(max-width: 640px)").matches) document.getElementById("main")?.focus();
  }, [route.value]);
  // In the same breath as the rendering: who sees the page may press a key.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const target = event.composedPath()[0];
      const typing = target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "?") setShortcuts(true);
      else if (event.key === "t") document.querySelector<HTMLElement>("[role=treeitem][tabindex='0']")?.focus();
      else if (event.key === "g") document.querySelector<HTMLElement>("main [role=tab][aria-selected=true]")?.focus();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const refresh = () => {
    Promise.all([refreshTree(), refreshOffers()]).catch((error: unknown) => fail("Cannot refresh", error));
  };
  return (
    <div class={`desk ${treeOpen ? "tree-open" : ""}`}>
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        document.getElementById("main")?.focus();
      }}>
        Skip to content
      </a>
      <header class="bar">
        <button type="button" class="narrow-only" aria-expanded={treeOpen} aria-controls="tree" onClick={() => setTreeOpen(!treeOpen)}>
          ☰ Databases
        </button>
        <a class="brand" href={hrefOf({ page: "home" })}>
          <img src="/_explorer/icon.svg" alt="" width="22" height="22" /> Orrery
        </a>
        <span class="soft account">{session.value?.account.id}</span>
        <nav aria-label="Account">
          <a href={hrefOf({ page: "home" })}>Connect</a>
          <a href={hrefOf({ page: "jobs" })}>Copy jobs</a>
        </nav>
        <span class="spread" />
        <button type="button" class="quiet" onClick={refresh}>
          Refresh
        </button>
        <button type="button" class="quiet" onClick={() => setShortcuts(true)} aria-label="Keyboard shortcuts">
          ?
        </button>
        <button type="button" class="quiet" onClick={toggleTheme}>
          {theme.value === "dark" ? "Light" : "Dark"}
        </button>
        <button type="button" class="quiet" onClick={signOut}>
          Sign out
        </button>
      </header>
      <aside class="side" id="tree" aria-label="Databases">
        <Tree />
        <button type="button" class="wide" onClick={() => go({ page: "new-database" })}>
          New database
        </button>
      </aside>
      <main id="main" tabIndex={-1}>
        <Content route={route.value} />
      </main>
      {shortcuts && <Shortcuts onClose={() => setShortcuts(false)} />}
    </div>
  );
}

function Content(props: { route: Route }) {
  const to = props.route;
  switch (to.page) {
    case "home":
      return <Home />;
    case "new-database":
      return <NewDatabase />;
    case "jobs":
      return <JobsPage />;
    case "database":
      return <DatabasePage key={to.db} db={to.db} />;
    case "new-container":
      return <NewContainer key={to.db} db={to.db} />;
    case "container":
      return <ContainerPage key={`${to.db}/${to.coll}`} place={{ db: to.db, coll: to.coll }} tab={to.tab} />;
  }
}

// Where the page is, kept in the part of the address behind the hash, so that it can be linked and gone back to.

import { signal } from "@preact/signals";

export const TABS = ["items", "query", "scripts", "settings", "partitions", "advisor"] as const;
export type Tab = (typeof TABS)[number];

export type Route =
  | { page: "home" }
  | { page: "new-database" }
  | { page: "jobs" }
  | { page: "database"; db: string }
  | { page: "new-container"; db: string }
  | { page: "container"; db: string; coll: string; tab: Tab };

export function parseRoute(hash: string): Route {
  let parts: string[];
  try {
    parts = hash.replace(/^#\/?/, "").split("/").filter((part) => part !== "").map(decodeURIComponent);
  } catch {
    return { page: "home" };
  }
  const [first, db, third, coll, last] = parts;
  if (first === "new-database") return { page: "new-database" };
  if (first === "jobs") return { page: "jobs" };
  if (first !== "dbs" || db === undefined) return { page: "home" };
  if (third === "new-container") return { page: "new-container", db };
  if (third !== "colls" || coll === undefined) return { page: "database", db };
  const tab = TABS.find((name) => name === last) ?? "items";
  return { page: "container", db, coll, tab };
}

export function hrefOf(route: Route): string {
  const name = encodeURIComponent;
  switch (route.page) {
    case "home":
      return "#/";
    case "new-database":
      return "#/new-database";
    case "jobs":
      return "#/jobs";
    case "database":
      return `#/dbs/${name(route.db)}`;
    case "new-container":
      return `#/dbs/${name(route.db)}/new-container`;
    case "container":
      return `#/dbs/${name(route.db)}/colls/${name(route.coll)}/${route.tab}`;
  }
}

export const route = signal<Route>(parseRoute(location.hash));
addEventListener("hashchange", () => {
  const found = parseRoute(location.hash);
  if (hrefOf(found) !== hrefOf(route.value)) route.value = found;
});

/** Goes somewhere at once, and not when the browser tells of the new address: keys may be pressed in between. */
export function go(to: Route): void {
  location.hash = hrefOf(to);
  route.value = to;
}

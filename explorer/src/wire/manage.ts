// The server's management API, as docs/management-api.md describes it.

import { Refused, type Client } from "./client.ts";
import type { Place } from "./resources.ts";

export type Window = "minute" | "hour" | "day";

export interface Rate {
  requests: number;
  requestUnits: number;
  throttled: number;
}

export interface Use {
  total: Rate;
  perSecond: Rate;
  perSecondOfMinute: Rate;
  slots: {
    requests: number[];
    requestUnits: number[];
    highestRequestUnits: number[];
    throttled: number[];
    bytes: number[];
  };
}

export interface Partition {
  id: string;
  minInclusive: string;
  maxExclusive: string;
  /** The share of the key space, from 0 to 1. */
  from: number;
  to: number;
  parents: string[];
  items: number;
  bytes: number;
  /** Request units a second that it may use; 0 where there is no limit. */
  throughput: number;
  use: Use;
}

export interface Insight {
  window: Window;
  slotSeconds: number;
  until: number;
  whole: Use;
  partitions: Partition[];
}

export interface Heat {
  slotSeconds: number;
  until: number;
  partitions: { id: string; from: number; to: number; requestUnits: number[][]; requests: number[][] }[];
}

export interface HotKey {
  partition: string;
  partitionKey: unknown;
  requestUnits: number;
  requests: number;
  throttled: number;
  error: number;
}

export interface LargeKey {
  partition: string;
  effectivePartitionKey: string;
  partitionKey: unknown;
  bytes: number;
  items: number | null;
  percentOfLimit: number;
}

export interface Alert {
  kind: string;
  database: string;
  container: string;
  partition: string;
  partitionKey: unknown;
  since: number;
  message: string;
}

const containerPath = (place: Place) =>
  `/_orrery/dbs/${encodeURIComponent(place.db)}/colls/${encodeURIComponent(place.coll)}`;

async function get<T>(client: Client, path: string, signal?: AbortSignal): Promise<T> {
  return JSON.parse((await client.manage("GET", path, { signal })).text) as T;
}

async function post<T>(client: Client, path: string, body: unknown): Promise<T> {
  const answer = await client.manage("POST", path, {
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return (answer.text === "" ? {} : JSON.parse(answer.text)) as T;
}

export const readInsight = (client: Client, place: Place, window: Window, signal?: AbortSignal) =>
  get<Insight>(client, `${containerPath(place)}/partitions?window=${window}`, signal);

export const readHeat = (client: Client, place: Place, window: "minute" | "hour", signal?: AbortSignal) =>
  get<Heat>(client, `${containerPath(place)}/heat?window=${window}`, signal);

export const readKeys = (client: Client, place: Place, window: Window, signal?: AbortSignal) =>
  get<{ hottest: HotKey[]; largest: LargeKey[] }>(client, `${containerPath(place)}/keys?window=${window}&count=15`, signal);

export const readAlerts = async (client: Client, signal?: AbortSignal) =>
  (await get<{ alerts: Alert[] }>(client, "/_orrery/alerts", signal)).alerts;

export const splitPartition = (client: Client, place: Place, id: string, children: number) =>
  post<{ children: string[] }>(client, `${containerPath(place)}/partitions/${encodeURIComponent(id)}/split`, { children });

export const mergePartitions = (client: Client, place: Place, left: string, right: string) =>
  post<{ child: string }>(client, `${containerPath(place)}/partitions/merge`, { left, right });

/** Whether a server simply does not have what was asked for. */
export const isMissing = (error: unknown) => error instanceof Refused && (error.status === 404 || error.status === 501);

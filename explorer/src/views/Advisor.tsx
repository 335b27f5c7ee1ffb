import type { Container, Place } from "../wire/resources.ts";

export function Advisor(_props: { place: Place; container: Container }) {
  return <p class="soft pad">Loading…</p>;
}

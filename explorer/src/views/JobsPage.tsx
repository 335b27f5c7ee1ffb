export function JobsPage() {
  return <p class="soft pad">Loading…</p>;
}

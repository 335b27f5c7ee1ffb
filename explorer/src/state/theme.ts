// Dark or light: as the system says, until the user chooses.

import { signal } from "@preact/signals";

const KEPT = "orrery.theme";
type Theme = "light" | "dark";

const system = matchMedia("(prefers-color-scheme: dark)");
const kept = localStorage.getItem(KEPT);
export const theme = signal<Theme>(kept === "light" || kept === "dark" ? kept : system.matches ? "dark" : "light");

system.addEventListener("change", () => {
  if (localStorage.getItem(KEPT) === null) show(system.matches ? "dark" : "light");
});

function show(next: Theme): void {
  theme.value = next;
  document.documentElement.dataset["theme"] = next;
}

export function toggleTheme(): void {
  const next = theme.value === "dark" ? "light" : "dark";
  localStorage.setItem(KEPT, next);
  show(next);
}

show(theme.value);

// Numbers for people.

export function numberText(value: number): string {
  const digits = value !== 0 && Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0;
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

/** `1 row`, `2,000 rows` */
export const countText = (count: number, one: string) => `${count.toLocaleString("en")} ${count === 1 ? one : `${one}s`}`;

const UNITS = ["bytes", "KB", "MB", "GB", "TB"];

export function bytesText(value: number): string {
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${numberText(value)} ${UNITS[unit] ?? ""}`;
}

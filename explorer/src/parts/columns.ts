// Widths of the columns of a table. Header and rows are grids of their own, so widths must not depend on what each holds.

const LEAST = 6;
const MOST = 42;
/** Rows that are looked at. */
const SAMPLE = 100;

/** As wide as what is in the first rows needs, within bounds; the last column takes what is left. */
export function templateOf(headers: string[], rows: number, cell: (row: number, column: number) => string): { gridTemplateColumns: string } {
  const widths = headers.map((header, column) => {
    let characters = header.length;
    for (let row = 0; row < Math.min(rows, SAMPLE); row += 1) characters = Math.max(characters, cell(row, column).length);
    return Math.min(MOST, Math.max(LEAST, characters)) + 3;
  });
  const last = widths.pop() ?? LEAST;
  return { gridTemplateColumns: [...widths.map((width) => `${width}ch`), `minmax(${last}ch, 1fr)`].join(" ") };
}

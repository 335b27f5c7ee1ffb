// Widths of the columns of a table. Header and rows are grids of their own, so widths must not depend on what each holds.

/** The width of a character, in the size of the font: the unit `ch` is wider in the bold header than in the rows. */
const CHARACTER_EM = 0.58;
const LEAST = 6;
const MOST = 42;
/** Rows that are looked at. */
const SAMPLE = 100;

/** As wide as what is in the first rows needs, within bounds. */
export function templateOf(headers: string[], rows: number, cell: (row: number, column: number) => string): { gridTemplateColumns: string } {
  const widths = headers.map((header, column) => {
    let characters = header.length;
    for (let row = 0; row < Math.min(rows, SAMPLE); row += 1) characters = Math.max(characters, cell(row, column).length);
    return `${((Math.min(MOST, Math.max(LEAST, characters)) + 2) * CHARACTER_EM).toFixed(1)}em`;
  });
  return { gridTemplateColumns: widths.join(" ") };
}

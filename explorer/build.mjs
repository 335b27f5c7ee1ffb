// Bundles the page into dist/, with compressed copies beside each file, for the server to embed.
//
// Names of scripts and styles carry a hash of what they hold, so that browsers may keep them for ever.
// The compressed copies are made here, once, and not by the server for each request.

import { build } from "esbuild";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { basename, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const here = fileURLToPath(new URL(".", import.meta.url));
const dist = join(here, "dist");

const result = await build({
  absWorkingDir: here,
  entryPoints: { main: "src/main.tsx", style: "src/style.css" },
  outdir: dist,
  bundle: true,
  format: "esm",
  splitting: true,
  minify: true,
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  entryNames: "[name]-[hash]",
  chunkNames: "part-[hash]",
  legalComments: "none",
  metafile: true,
  write: false,
});

await mkdir(dist, { recursive: true });
for (const name of await readdir(dist)) {
  if (name !== ".gitignore") await rm(join(dist, name), { recursive: true });
}

const entry = (source) => {
  const found = Object.entries(result.metafile.outputs).find(([, output]) => output.entryPoint === source);
  return basename(found[0]);
};
const page = (await readFile(join(here, "index.html"), "utf8"))
  .replace("%MAIN%", entry("src/main.tsx"))
  .replace("%STYLE%", entry("src/style.css"));

const files = result.outputFiles.map((file) => [basename(file.path), Buffer.from(file.contents)]);
files.push(["index.html", Buffer.from(page)]);
files.push(["icon.svg", await readFile(join(here, "icon.svg"))]);

let plain = 0;
let packed = 0;
for (const [name, bytes] of files) {
  const gzip = gzipSync(bytes, { level: 9 });
  const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
  await writeFile(join(dist, name), bytes);
  await writeFile(join(dist, `${name}.gz`), gzip);
  await writeFile(join(dist, `${name}.br`), brotli);
  plain += bytes.length;
  packed += gzip.length;
}
const kilobytes = (bytes) => `${Math.round(bytes / 1024)} KiB`;
console.log(`explorer: ${files.length} files, ${kilobytes(plain)}, ${kilobytes(packed)} with gzip`);

// A part of the page as a module that Node can run.

import { build } from "esbuild";

export async function bundle(source) {
  const made = await build({ entryPoints: [new URL(`../src/${source}`, import.meta.url).pathname], bundle: true, format: "esm", write: false });
  return import(`data:text/javascript;base64,${Buffer.from(made.outputFiles[0].contents).toString("base64")}`);
}

// What may be the name of a database or container.

export function nameError(name: string): string {
  if (name === "") return "";
  if (/[/\\?#]/.test(name)) return "A name cannot have / \\ ? or #.";
  if (/\s$/.test(name)) return "A name cannot end with a space.";
  if (new TextEncoder().encode(name).length > 255) return "A name has 255 bytes at most.";
  return "";
}

/** Paths such as /tenant or /address/zip. */
export function pathError(path: string): string {
  if (path === "") return "";
  if (!path.startsWith("/")) return "A path begins with a slash: /tenant.";
  if (!/^(\/(?:"(?:[^"\\]|\\.)+"|'(?:[^'\\]|\\.)+'|[^/"'][^/"]*))+$/.test(path)) return "A path names one property after each slash: /address/zip.";
  if (/\*|\?|\[\]/.test(path)) return "Wildcards and arrays cannot be part of this path.";
  return "";
}

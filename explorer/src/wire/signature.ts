// The signature of a request: the account key over verb, resource type, link and date.
//
// The browser's own cryptography is missing on pages that came over plain HTTP from another machine, so a small
// library does it everywhere; a signature is over a hundred bytes and takes microseconds.

import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";

export class KeyError extends Error {}

/** Reads a key in the base64 form of connection strings. */
export function readKey(text: string): Uint8Array {
  const trimmed = text.trim();
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(trimmed) || trimmed.length % 4 !== 0) {
    throw new KeyError("An account key is base64 text, as it stands in a connection string behind AccountKey=.");
  }
  return Uint8Array.from(atob(trimmed), (character) => character.charCodeAt(0));
}

export function sign(key: Uint8Array, verb: string, type: string, link: string, date: string): string {
  const line = `${verb.toLowerCase()}\n${type.toLowerCase()}\n${link}\n${date.toLowerCase()}\n\n`;
  const bytes = hmac(sha256, key, new TextEncoder().encode(line));
  const signature = btoa(String.fromCharCode(...bytes));
  return encodeURIComponent(`type=master&ver=1.0&sig=${signature}`);
}

// Runs first in every context, before any text of a user. It takes away what makes code from text, gives
// `Error` the form with a number that server-side scripts use, and bounds those built-in functions whose work
// is not polled by the engine and grows faster than the memory they use.
//
// Everything it needs later it keeps in constants: scripts may change any prototype they like. Descriptors and
// records have no prototype for the same reason. It answers a function that puts whatever was thrown into words.
export default (function () {
  const { apply, construct, getPrototypeOf, setPrototypeOf } = Reflect;
  const { defineProperty } = Object;
  const { isArray } = Array;
  const { slice, toWellFormed } = String.prototype;
  const toText = String;
  const TypeFault = TypeError;
  const RangeFault = RangeError;
  const NativeError = Error;
  const hidden = (value) => ({ __proto__: null, value, writable: true, enumerable: false, configurable: true });
  const shown = (value) => ({ __proto__: null, value, writable: true, enumerable: true, configurable: true });

  // Code from text. `Function` stays as a name, so that `instanceof` still answers.
  const refuse = function Function() {
    throw new TypeFault('Functions cannot be made from text in server-side scripts.');
  };
  defineProperty(refuse, 'prototype', { __proto__: null, value: getPrototypeOf(refuse) });
  const kinds = [function () {}, async function () {}, function* () {}, async function* () {}];
  for (let i = 0; i < kinds.length; i += 1) {
    defineProperty(getPrototypeOf(kinds[i]), 'constructor', hidden(refuse));
  }
  defineProperty(globalThis, 'Function', hidden(refuse));
  const absent = ['eval', 'SharedArrayBuffer', 'Atomics', 'queueMicrotask', 'navigator', 'performance'];
  for (let i = 0; i < absent.length; i += 1) {
    delete globalThis[absent[i]];
  }

  // new Error(404, 'not there') carries a number, which becomes the sub-status of the answer.
  const Numbered = function Error(...given) {
    const numbered = given.length > 1 && typeof given[0] === 'number' && typeof given[1] === 'string';
    const made = construct(NativeError, numbered ? [given[1]] : given, new.target === undefined ? Numbered : new.target);
    if (numbered) {
      defineProperty(made, 'number', shown(given[0]));
    }
    return made;
  };
  defineProperty(Numbered, 'prototype', { __proto__: null, value: NativeError.prototype });
  defineProperty(NativeError.prototype, 'constructor', hidden(Numbered));
  setPrototypeOf(Numbered, NativeError);
  defineProperty(globalThis, 'Error', hidden(Numbered));

  // Dense arrays of this length do not fit the memory of a script; longer ones are sparse or only look like arrays.
  const LENGTH_MAX = 10000000;
  // Characters compared by a naive search in the worst case.
  const SEARCH_MAX = 1000000000;
  const NORMALIZED_MAX = 100000;
  const guard = (owner, name, check) => {
    const native = owner[name];
    const guarded = {
      [name](...given) {
        check(this, given);
        return apply(native, this, given);
      },
    }[name];
    defineProperty(guarded, 'length', { __proto__: null, value: native.length });
    defineProperty(owner, name, hidden(guarded));
  };
  const bounded = (value) => {
    if (value !== null && typeof value === 'object' && value.length > LENGTH_MAX) {
      throw new RangeFault('The array is too long.');
    }
  };
  const loops = ['fill', 'reverse', 'join', 'toLocaleString', 'splice', 'copyWithin', 'sort', 'slice', 'shift', 'unshift'];
  for (let i = 0; i < loops.length; i += 1) {
    guard(Array.prototype, loops[i], bounded);
  }
  guard(Array.prototype, 'concat', (self, given) => {
    bounded(self);
    for (let i = 0; i < given.length; i += 1) {
      bounded(given[i]);
    }
  });
  const flatten = (from, depth, into) => {
    bounded(from);
    for (let i = 0; i < from.length; i += 1) {
      if (i in from) {
        const value = from[i];
        if (depth >= 1 && isArray(value)) {
          flatten(value, depth - 1, into);
        } else {
          defineProperty(into, into.length, shown(value));
        }
      }
    }
    return into;
  };
  const flat = {
    flat(depth) {
      return flatten(this, depth === undefined ? 1 : +depth, []);
    },
  }.flat;
  defineProperty(Array.prototype, 'flat', hidden(flat));

  const searchable = (self, given) => {
    if (typeof self === 'string' && typeof given[0] === 'string' && self.length * given[0].length > SEARCH_MAX) {
      throw new RangeFault('The search is too long.');
    }
  };
  const searches = ['indexOf', 'lastIndexOf', 'includes', 'split', 'replace', 'replaceAll'];
  for (let i = 0; i < searches.length; i += 1) {
    guard(String.prototype, searches[i], searchable);
  }
  guard(String.prototype, 'normalize', (self) => {
    if (typeof self === 'string' && self.length > NORMALIZED_MAX) {
      throw new RangeFault('The text is too long.');
    }
  });

  // A value that holds another one twice, many levels deep, is small in memory and huge as text. The engine does not
  // poll while it writes, but it calls a replacer for each value, and calls are polled.
  const { stringify } = JSON;
  const polled = {
    stringify(value, replacer, space) {
      let visit = replacer;
      if (isArray(replacer)) {
        const listed = { __proto__: null };
        for (let i = 0; i < replacer.length; i += 1) {
          listed[toText(replacer[i])] = true;
        }
        visit = function (name, inner) {
          return name === '' || isArray(this) || name in listed ? inner : undefined;
        };
      } else if (typeof replacer !== 'function') {
        visit = (name, inner) => inner;
      }
      return stringify(value, visit, space);
    },
  }.stringify;
  defineProperty(JSON, 'stringify', hidden(polled));

  // What was thrown, as `number NUL text NUL stack`. Getters of the thrown value may throw in turn.
  const cut = (text, length) => apply(slice, apply(toWellFormed, text, []), [0, length]);
  return (thrown) => {
    let number = -1;
    let text = 'unknown';
    let stack = '';
    try {
      text = cut(toText(thrown), 8192);
    } catch {}
    if (thrown !== null && typeof thrown === 'object') {
      try {
        const own = thrown.number;
        number = typeof own === 'number' ? own | 0 : -1;
      } catch {}
      try {
        const own = thrown.stack;
        stack = typeof own === 'string' ? cut(own, 8192) : '';
      } catch {}
    }
    return `${number}\u0000${text}\u0000${stack}`;
  };
})();

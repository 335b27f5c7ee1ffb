// What a stored procedure or a trigger finds in its global scope: getContext, the collection, the request, the
// response and the console. The host answers each operation at once, but callbacks wait in a queue until the
// script has returned to the loop, so a callback never runs inside the call that caused it.
//
// `call(operation, link, body, options, reply)` reaches the host and answers false when it does not accept the
// operation. `log(text)` keeps a line. `setup` is JSON. It answers [list, enter, step, finish].
export default (function (call, log, setup) {
  const { apply } = Reflect;
  const { defineProperty, freeze } = Object;
  const { isArray } = Array;
  const { parse, stringify } = JSON;
  const { then } = Promise.prototype;
  const { toLowerCase, toWellFormed } = String.prototype;
  const { sort } = Array.prototype;
  const toText = String;
  const Fault = Error;
  const given = parse(setup);
  const hidden = (value) => ({ __proto__: null, value, writable: true, enumerable: false, configurable: true });
  const shown = (value) => ({ __proto__: null, value, writable: true, enumerable: true, configurable: true });
  const append = (list, value) => defineProperty(list, list.length, shown(value));

  const ErrorCodes = freeze({
    BadRequest: 400,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    PreconditionFailed: 412,
    RequestEntityTooLarge: 413,
    RetryWith: 449,
    InternalServerError: 500,
  });
  const fault = (number, message) => {
    const made = new Fault(number, message);
    defineProperty(made, 'body', shown(message));
    return made;
  };

  // The queue of callbacks. Links are records without prototype: no setter of a script can see them.
  let first = null;
  let last = null;
  let aborted = null;
  let rejected = null;
  const enqueue = (task) => {
    const link = { __proto__: null, task, next: null };
    if (last === null) {
      first = link;
    } else {
      last.next = link;
    }
    last = link;
  };

  // Every operation takes its options and its callback in this order and may be given only the callback.
  const callbackOf = (options, callback) => {
    const chosen = typeof options === 'function' ? options : callback;
    if (chosen !== undefined && chosen !== null && typeof chosen !== 'function') {
      throw fault(400, `The callback must be a function, not of type ${typeof chosen}.`);
    }
    return chosen;
  };
  const optionsOf = (options) => {
    if (options === undefined || options === null || typeof options === 'function') {
      return { __proto__: null };
    }
    if (typeof options !== 'object') {
      throw fault(400, `The options must be an object, not of type ${typeof options}.`);
    }
    return options;
  };
  const textOf = (value) => (value === undefined || value === null || value === '' ? undefined : toText(value));
  const isAction = (word) => word === 'default' || word === 'include' || word === 'exclude';
  const actionOf = (value) => {
    if (value === undefined || value === null) {
      return undefined;
    }
    const word = typeof value === 'string' ? apply(toLowerCase, value, []) : undefined;
    if (!isAction(word)) {
      throw fault(400, "The option indexAction must be 'default', 'include' or 'exclude'.");
    }
    return word;
  };
  const sizeOf = (value) => {
    if (value === undefined || value === null) {
      return undefined;
    }
    if (typeof value !== 'number' || value !== value) {
      throw fault(400, 'The option pageSize must be a number.');
    }
    return value >= 1 ? value - (value % 1) : undefined;
  };
  const writeOptions = (options) => {
    const from = optionsOf(options);
    return stringify({
      __proto__: null,
      etag: textOf(from.etag),
      ifNoneMatch: textOf(from.ifNoneMatch),
      indexAction: actionOf(from.indexAction),
      disableAutomaticIdGeneration: from.disableAutomaticIdGeneration === true,
    });
  };
  const feedOptions = (pageSize, continuation) =>
    stringify({ __proto__: null, pageSize: sizeOf(pageSize), continuation: textOf(continuation) });
  const linkOf = (link) => {
    if (typeof link !== 'string' || link === '') {
      throw fault(400, 'The link of the resource must be a string that is not empty.');
    }
    return link;
  };
  const bodyOf = (body) => {
    if (typeof body === 'string') {
      return body;
    }
    if (body === null || typeof body !== 'object') {
      throw fault(400, 'The body of a document must be an object or a string of JSON.');
    }
    const text = stringify(body);
    if (typeof text !== 'string') {
      throw fault(400, 'The body of a document must be an object or a string of JSON.');
    }
    return text;
  };
  const needs = (name, least, count) => {
    if (count < least) {
      throw fault(400, `The function ${name} needs at least ${least} argument(s) and was given ${count}.`);
    }
  };

  const reply = (status, body, continuation, notModified) => ({ __proto__: null, status, body, continuation, notModified });
  const about = (answer) => {
    const options = {};
    if (answer.continuation !== undefined) {
      defineProperty(options, 'continuation', shown(answer.continuation));
    }
    if (answer.notModified) {
      defineProperty(options, 'notModified', shown(true));
    }
    return options;
  };
  const send = (operation, link, body, options, callback) => {
    const answer = call(operation, link, body, options, reply);
    if (answer === false) {
      return false;
    }
    const failed = answer.status >= 400;
    if (!failed && typeof callback !== 'function') {
      return true;
    }
    enqueue(() => {
      if (failed) {
        const error = fault(answer.status, answer.body);
        if (typeof callback !== 'function') {
          throw error;
        }
        callback(error, undefined, {});
      } else if (operation === 'delete') {
        callback(undefined, about(answer));
      } else if (answer.notModified) {
        callback(undefined, undefined, about(answer));
      } else {
        callback(undefined, parse(answer.body), about(answer));
      }
    });
    return true;
  };

  const collection = {
    getSelfLink() {
      return given.selfLink;
    },
    getAltLink() {
      return given.altLink;
    },
    createDocument(link, body, options, callback) {
      needs('createDocument', 2, arguments.length);
      return send('create', linkOf(link), bodyOf(body), writeOptions(options), callbackOf(options, callback));
    },
    upsertDocument(link, body, options, callback) {
      needs('upsertDocument', 2, arguments.length);
      return send('upsert', linkOf(link), bodyOf(body), writeOptions(options), callbackOf(options, callback));
    },
    replaceDocument(link, body, options, callback) {
      needs('replaceDocument', 2, arguments.length);
      return send('replace', linkOf(link), bodyOf(body), writeOptions(options), callbackOf(options, callback));
    },
    deleteDocument(link, options, callback) {
      needs('deleteDocument', 1, arguments.length);
      return send('delete', linkOf(link), undefined, writeOptions(options), callbackOf(options, callback));
    },
    readDocument(link, options, callback) {
      needs('readDocument', 1, arguments.length);
      return send('read', linkOf(link), undefined, writeOptions(options), callbackOf(options, callback));
    },
    readDocuments(link, options, callback) {
      needs('readDocuments', 1, arguments.length);
      const from = optionsOf(options);
      const page = feedOptions(from.pageSize, from.continuation);
      return send('feed', linkOf(link), undefined, page, callbackOf(options, callback));
    },
    queryDocuments(link, query, options, callback) {
      needs('queryDocuments', 2, arguments.length);
      if (query === null || (typeof query !== 'string' && typeof query !== 'object')) {
        throw fault(400, 'The query must be a string, or an object with a query and parameters.');
      }
      const from = optionsOf(options);
      const text = stringify(typeof query === 'string' ? { __proto__: null, query } : query);
      const page = feedOptions(from.pageSize, from.continuation);
      return send('query', linkOf(link), text, page, callbackOf(options, callback));
    },
  };

  // The query builder. Stages are functions from a list of documents to a list. Pages are read until as many
  // results were found as were asked for; a chain that sorts reads all of them.
  const each = (list, visit) => {
    for (let i = 0; i < list.length; i += 1) {
      visit(list[i]);
    }
  };
  const mapped = (transform) => (list) => {
    const out = [];
    each(list, (item) => {
      const value = transform(item);
      if (value !== undefined) {
        append(out, value);
      }
    });
    return out;
  };
  const flattened = (list, deep, out) => {
    each(list, (item) => {
      if (!isArray(item)) {
        append(out, item);
      } else if (deep) {
        flattened(item, true, out);
      } else {
        each(item, (inner) => append(out, inner));
      }
    });
    return out;
  };
  const rank = (value) => {
    switch (typeof value) {
      case 'undefined':
        return 0;
      case 'boolean':
        return 2;
      case 'number':
        return 3;
      case 'string':
        return 4;
      default:
        return value === null ? 1 : 5;
    }
  };
  const order = (a, b) => {
    const ranks = rank(a.key) - rank(b.key);
    if (ranks !== 0) {
      return ranks;
    }
    return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
  };
  const sorted = (keyOf, sign) => (list) => {
    const rows = [];
    each(list, (item) => append(rows, { __proto__: null, key: keyOf(item), item }));
    apply(sort, rows, [(a, b) => sign * order(a, b)]);
    const out = [];
    each(rows, (row) => append(out, row.item));
    return out;
  };
  const functionOf = (value) => {
    if (typeof value !== 'function') {
      throw fault(400, 'The predicate or transform must be a function.');
    }
    return value;
  };
  const stages = {
    __proto__: null,
    filter: (predicate) => {
      functionOf(predicate);
      return (list) => {
        const out = [];
        each(list, (item) => predicate(item) && append(out, item));
        return out;
      };
    },
    map: (transform) => mapped(functionOf(transform)),
    pluck: (name) => {
      if (typeof name !== 'string' || name === '') {
        throw fault(400, 'The name of the property must be a string that is not empty.');
      }
      return mapped((item) => item[name]);
    },
    flatten: (isShallow) => (list) => flattened(list, isShallow !== true, []),
    sortBy: (key) => sorted(functionOf(key), 1),
    sortByDescending: (key) => sorted(functionOf(key), -1),
    unwind: (inner, result) => {
      functionOf(inner);
      return (list) => {
        const out = [];
        each(list, (item) => {
          const parts = inner(item);
          each(isArray(parts) ? parts : [], (part) => append(out, typeof result === 'function' ? result(item, part) : [item, part]));
        });
        return out;
      };
    },
  };
  const EVERYTHING = stringify({ __proto__: null, query: 'SELECT * FROM root' });
  const finishQuery = (answer, chain, size) => {
    let found = [];
    let continuation;
    for (;;) {
      if (answer.status >= 400) {
        throw fault(answer.status, answer.body);
      }
      let page = parse(answer.body);
      if (!chain.sorts) {
        for (let at = chain; at.stage !== null; at = at.next) {
          page = at.stage(page);
        }
      }
      each(page, (item) => append(found, item));
      continuation = answer.continuation;
      if (continuation === undefined || (!chain.sorts && found.length >= size)) {
        break;
      }
      const next = call('query', given.selfLink, EVERYTHING, feedOptions(size, continuation), reply);
      if (next === false) {
        if (chain.sorts) {
          throw fault(413, 'There are more documents than one script may sort.');
        }
        break;
      }
      answer = next;
    }
    if (chain.sorts) {
      for (let at = chain; at.stage !== null; at = at.next) {
        found = at.stage(found);
      }
    }
    return { __proto__: null, found, options: about({ __proto__: null, continuation }) };
  };
  const startQuery = (chain, options, callback) => {
    const receive = callbackOf(options, callback);
    const from = optionsOf(options);
    const size = sizeOf(from.pageSize) ?? 100;
    const answer = call('query', given.selfLink, EVERYTHING, feedOptions(size, from.continuation), reply);
    if (answer === false) {
      return { isAccepted: false };
    }
    enqueue(() => {
      let done;
      try {
        done = finishQuery(answer, chain, size);
      } catch (error) {
        if (typeof receive !== 'function') {
          throw error;
        }
        receive(error, undefined, {});
        return;
      }
      if (typeof receive === 'function') {
        receive(undefined, done.found, done.options);
      } else if (context.getResponse === undefined) {
        throw fault(400, 'A callback is needed where there is no response.');
      } else {
        context.getResponse().appendBody(stringify(done.found));
      }
    });
    return { isAccepted: true };
  };

  // Chains are lists from the first stage to the last; each link knows whether any stage sorts.
  const END = { __proto__: null, stage: null, next: null, sorts: false };
  const extend = (chain, stage, sorts) =>
    chain.stage === null
      ? { __proto__: null, stage, next: END, sorts }
      : { __proto__: null, stage: chain.stage, next: extend(chain.next, stage, sorts), sorts: chain.sorts || sorts };
  const names = ['filter', 'map', 'pluck', 'flatten', 'sortBy', 'sortByDescending', 'unwind'];
  const isSort = (name) => name === 'sortBy' || name === 'sortByDescending';
  const chained = (chain) => {
    const query = {};
    for (let i = 0; i < names.length; i += 1) {
      const name = names[i];
      defineProperty(
        query,
        name,
        shown((a, b) => chained(extend(chain, stages[name](a, b), isSort(name)))),
      );
    }
    defineProperty(query, 'value', shown((options, callback) => startQuery(chain, options, callback)));
    return query;
  };
  collection.chain = () => chained(END);
  collection.value = (options, callback) => startQuery(END, options, callback);
  for (let i = 0; i < names.length; i += 1) {
    const name = names[i];
    defineProperty(
      collection,
      name,
      shown((a, b, c, d) => {
        // `flatten` may come without its argument, and `unwind` has two functions before options and callback.
        if (name === 'flatten' && typeof a !== 'boolean') {
          return startQuery(extend(END, stages.flatten(false), false), a, b);
        }
        if (name === 'unwind' && typeof b === 'function') {
          return startQuery(extend(END, stages.unwind(a, b), false), c, d);
        }
        return startQuery(extend(END, stages[name](a), isSort(name)), b, c);
      }),
    );
  }

  // Request and response are maps of a few named values, with accessors for each of them.
  const changed = { __proto__: null, request: false, response: false };
  const pieceOf = (value) => (value !== null && typeof value === 'object' ? stringify(value) : toText(value));
  const message = (which, values, writable) => {
    const made = {};
    const get = (name) => values[name];
    const set = (name, value) => {
      if (!(name in values)) {
        throw fault(400, `There is no value named ${toText(name)} to set.`);
      }
      if (!writable || name !== 'Body') {
        throw fault(403, `The value ${toText(name)} cannot be written.`);
      }
      changed[which] = true;
      values[name] = value;
    };
    const add = (name, value) => {
      // What is appended is text, whatever it was: 1 and 2 make "12".
      const old = values[name];
      set(name, old === undefined || old === null ? value : pieceOf(old) + pieceOf(value));
    };
    const method = (name, body) => defineProperty(made, name, shown(body));
    for (const name in values) {
      method(`get${name}`, () => get(name));
      if (writable) {
        method(`set${name}`, (value) => set(name, value));
        method(`append${name}`, (value) => add(name, value));
      }
    }
    method('getValue', get);
    if (writable) {
      method('setValue', set);
      method('appendValue', add);
    }
    return made;
  };
  const bodyIn = (text) => (text === undefined || text === null || text === '' ? undefined : parse(text));
  const requestValues = { __proto__: null, Body: bodyIn(given.requestBody), OperationType: given.operation };
  const responseValues = { __proto__: null, Body: bodyIn(given.responseBody) };
  if (given.kind === 'post') {
    responseValues.MaxResourceQuota = given.quotaMost;
    responseValues.ResourceQuotaCurrentUsage = given.quotaUsed;
  }
  const request = message('request', requestValues, given.kind === 'pre');

  const context = {
    getCollection() {
      return collection;
    },
    getRequest() {
      return request;
    },
    abort(error) {
      const thrown = error === undefined ? fault(400, 'The script was aborted.') : error;
      aborted = { __proto__: null, thrown };
      throw thrown;
    },
  };
  collection.request = request;
  if (given.kind !== 'pre') {
    const response = message('response', responseValues, true);
    context.getResponse = () => response;
    collection.response = response;
  }

  const line = (...words) => {
    if (!given.logging) {
      return;
    }
    let text = toText(words[0]);
    let used = 1;
    if (typeof words[0] === 'string' && words.length > 1) {
      const form = text;
      text = '';
      for (let i = 0; i < form.length; i += 1) {
        const mark = form[i] === '%' ? form[i + 1] : undefined;
        if (mark === '%') {
          text += '%';
          i += 1;
        } else if (mark === 's' && used < words.length) {
          text += toText(words[used]);
          used += 1;
          i += 1;
        } else {
          text += form[i];
        }
      }
    }
    for (; used < words.length; used += 1) {
      text += ` ${toText(words[used])}`;
    }
    log(apply(toWellFormed, text, []));
  };
  const console = { log: line, info: line, warn: line, error: line, debug: line };

  defineProperty(globalThis, 'ErrorCodes', hidden(ErrorCodes));
  defineProperty(globalThis, 'getContext', hidden(() => context));
  defineProperty(globalThis, '__', hidden(collection));
  defineProperty(globalThis, 'console', hidden(console));

  const check = () => {
    const failure = aborted === null ? rejected : aborted;
    if (failure !== null) {
      throw failure.thrown;
    }
  };
  // The arguments that the client sent, as Function.apply takes them: an array or what looks like one, or null for none.
  const list = (text) => {
    const sent = text === undefined ? null : parse(text);
    if (sent === null) {
      return [];
    }
    const count = +sent.length;
    if (typeof sent !== 'object' || count > +given.argumentsMax) {
      throw fault(400, 'The arguments are not a list that a function can be called with.');
    }
    const made = [];
    for (let i = 0; i + 1 <= count; i += 1) {
      append(made, sent[i]);
    }
    return made;
  };
  // Calls the script. If it answers a promise, its rejection is the script's failure.
  const enter = (main, sent) => {
    const result = apply(main, undefined, sent);
    if (result !== null && typeof result === 'object') {
      try {
        apply(then, result, [undefined, (thrown) => {
          rejected = { __proto__: null, thrown };
        }]);
      } catch {}
    }
  };
  // Runs the next callback; false when none waits.
  const step = () => {
    check();
    if (first === null) {
      return false;
    }
    const { task } = first;
    first = first.next;
    if (first === null) {
      last = null;
    }
    task();
    return true;
  };
  // The body that was set, as JSON, or undefined when none was.
  const finish = () => {
    check();
    const which = given.kind === 'pre' ? 'request' : 'response';
    if (!changed[which]) {
      return undefined;
    }
    return stringify(which === 'request' ? requestValues.Body : responseValues.Body);
  };
  return [list, enter, step, finish];
});

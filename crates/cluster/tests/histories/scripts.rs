//! What the scripts of the bank do. An operation that is not accepted ends them: on a very busy machine their time may
//! be over before they are.

pub const PROCEDURES: [(&str, &str); 4] =
    [("transfer", TRANSFER), ("count", COUNT), ("leave", LEAVE), ("audit", AUDIT)];

/// Moves money if there is enough. `fails` says where it throws: 1 after the first account, 2 at the very end.
const TRANSFER: &str = r#"
function transfer(entry, fails) {
    var link = __.getAltLink();
    need(__.queryDocuments(link, "SELECT * FROM c WHERE c.kind = 'account'", {pageSize: 100}, function (err, accounts) {
        if (err) throw err;
        var from = accounts.find(a => a.id == entry.from), to = accounts.find(a => a.id == entry.to);
        if (from.balance < entry.amount) return __.response.setBody({moved: false, sum: sum(accounts)});
        from.balance -= entry.amount;
        to.balance += entry.amount;
        need(__.replaceDocument(from._self, from, {etag: from._etag}, function (err) {
            if (err) throw err;
            if (fails == 1) {
                __.createDocument(link, {id: 'ghost-' + entry.id, pk: entry.pk, kind: 'ghost'});
                throw new Error('on purpose');
            }
            need(__.replaceDocument(to._self, to, function (err) {
                if (err) throw err;
                need(__.createDocument(link, entry, function (err) {
                    if (err) throw err;
                    // What a script reads again is what it wrote.
                    need(__.readDocument(link + '/docs/' + entry.from, function (err, again) {
                        if (err || again.balance != from.balance) throw new Error('own write not seen');
                        if (fails == 2) throw new Error('on purpose');
                        __.response.setBody({moved: true, sum: sum(accounts)});
                    }));
                }));
            }));
        }));
    }));
    function need(accepted) { if (!accepted) throw new Error('not accepted'); }
    function sum(accounts) { return accounts.reduce((all, a) => all + a.balance, 0); }
}"#;

/// Adds one to the counter and answers what it reached.
const COUNT: &str = r#"
async function count() {
    var link = __.getAltLink() + '/docs/counter';
    var need = (accepted, no) => accepted || no(new Error('not accepted'));
    var counter = await new Promise((yes, no) =>
        need(__.readDocument(link, (err, doc) => err ? no(err) : yes(doc)), no));
    counter.value += 1;
    await new Promise((yes, no) =>
        need(__.replaceDocument(counter._self, counter, err => err ? no(err) : yes()), no));
    getContext().getResponse().setBody(counter.value);
}"#;

/// Leaves if both are on duty. It writes one item and depends on the other.
const LEAVE: &str = r#"
function leave(who) {
    need(__.queryDocuments(__.getSelfLink(), "SELECT * FROM c WHERE c.kind = 'duty'", function (err, people) {
        if (err) throw err;
        var on = people.filter(p => p.on).length;
        if (on == 2) {
            var me = people.find(p => p.id == who);
            me.on = false;
            need(__.replaceDocument(me._self, me, function (err) { if (err) throw err; }));
        }
        __.response.setBody({on: on, left: on == 2});
    }));
    function need(accepted) { if (!accepted) throw new Error('not accepted'); }
}"#;

/// Looks at everything.
const AUDIT: &str = r#"
function audit() {
    var link = __.getSelfLink();
    var accepted = __.queryDocuments(link, "SELECT * FROM c WHERE c.kind IN ('account', 'duty', 'ghost')", {pageSize: 1000}, function (err, all) {
        if (err) throw err;
        var sum = 0, on = 0, ghosts = 0;
        all.forEach(function (item) {
            if (item.kind == 'account') sum += item.balance;
            if (item.kind == 'duty' && item.on) on++;
            if (item.kind == 'ghost') ghosts++;
        });
        __.response.setBody({sum: sum, on: on, ghosts: ghosts});
    });
    if (!accepted) throw new Error('not accepted');
}"#;

/// Runs after a create: counts, and puts the number into the answer. It throws for items that say so.
pub const COUNT_TRIGGER: &str = r#"
function countAfter() {
    var response = getContext().getResponse(), made = response.getBody(), collection = getContext().getCollection();
    var accepted = collection.readDocument(collection.getAltLink() + '/docs/counter', function (err, counter) {
        if (err) throw err;
        counter.value += 1;
        var accepted = collection.replaceDocument(counter._self, counter, function (err) {
            if (err) throw err;
            if (made.fails) throw new Error('on purpose');
            response.setBody({reached: counter.value});
        });
        if (!accepted) throw new Error('not accepted');
    });
    if (!accepted) throw new Error('not accepted');
}"#;

/// Runs before a create and marks what is to be made.
pub const MARK_TRIGGER: &str = r#"
function markBefore() {
    var request = getContext().getRequest(), item = request.getBody();
    item.marked = request.getOperationType();
    request.setBody(item);
}"#;

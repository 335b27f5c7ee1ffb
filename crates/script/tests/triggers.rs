//! Triggers: before an operation, with its body to change; after it, with its response.

mod shelf;

use orrery_script::{Limits, ScriptError, Trigger, call_post_trigger, call_pre_trigger};
use serde_json::{Value, json};
use shelf::{Shelf, program};

fn before(source: &str, body: &Value) -> Result<Option<Value>, ScriptError> {
    let text = body.to_string();
    let trigger = Trigger { operation: "Create", request_body: text.as_bytes(), response_body: b"" };
    let finished = call_pre_trigger(&program(source), trigger, false, Shelf::default(), &Limits::default());
    let parse = |body: Vec<u8>| serde_json::from_slice(&body).expect("bodies are JSON");
    finished.result.map(|output| output.body.map(parse))
}

#[test]
fn a_pre_trigger_changes_the_body_of_the_request() {
    let source = r#"
        function stamp() {
            var request = getContext().getRequest(), item = request.getBody();
            item.stamped = request.getOperationType() + typeof getContext().getResponse;
            request.setBody(item);
        }"#;
    let changed = before(source, &json!({"id": "a", "__proto__": 1}));
    assert_eq!(changed, Ok(Some(json!({"id": "a", "__proto__": 1, "stamped": "Createundefined"}))));
    assert_eq!(before("() => { __.request.getBody().lost = 1 }", &json!({"id": "a"})), Ok(None));
    let refused = before("() => { throw new Error(403, 'not this one') }", &json!({}));
    assert!(matches!(refused, Err(ScriptError::Threw { number: Some(403), .. })), "{refused:?}");
}

#[test]
fn a_post_trigger_sees_the_response_and_can_write_beside_it() {
    let source = r#"
        function count() {
            var made = getContext().getResponse().getBody(), link = __.getSelfLink();
            __.upsertDocument(link, { id: 'count', of: made.id, by: __.request.getBody().id }, function (err) {
                if (err) throw err;
            });
            made.quotas = [__.response.getMaxResourceQuota(), __.response.getResourceQuotaCurrentUsage()];
            try { getContext().getRequest().setBody(1); } catch (e) { made.noted = e.message; }
            getContext().getResponse().setBody(made);
        }"#;
    let trigger =
        Trigger { operation: "Create", request_body: br#"{"id":"in"}"#, response_body: br#"{"id":"out"}"# };
    let finished = call_post_trigger(&program(source), trigger, false, Shelf::default(), &Limits::default());
    let output = finished.result.expect("the trigger is right");
    let body: Value = serde_json::from_slice(&output.body.expect("it set a body")).expect("bodies are JSON");
    assert_eq!(body["id"], "out");
    assert!(body["noted"].is_string());
    assert_eq!(body["quotas"], json!(["collectionSize=10;", "collectionSize=1;"]));
    assert_eq!(finished.host.items["count"]["of"], "out");
    assert_eq!(finished.host.items["count"]["by"], "in");
}

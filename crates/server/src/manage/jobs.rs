//! Jobs that copy containers and give them another partition key.

use http::{Method, StatusCode};
use orrery_cluster::copy::{ContainerName, CopyRequest, JobKind, JobMode, JobPhase, JobReport, RekeyRequest};
use orrery_nosql::Denial;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{Answer, Call, not_found};
use super::no_such_path;

pub async fn serve(call: &Call<'_>, rest: &[&str]) -> Result<Answer, Denial> {
    match rest {
        [] => {
            call.only(&[Method::GET, Method::POST])?;
            if *call.method == Method::POST {
                return create(call).await;
            }
            let jobs: Vec<Value> = call.db.jobs().iter().map(show).collect();
            Ok(Answer::json(json!({ "jobs": jobs })))
        }
        [id] => {
            call.only(&[Method::GET, Method::DELETE])?;
            let report = find(call, id)?;
            if *call.method == Method::GET {
                return Ok(Answer::json(show(&report)));
            }
            call.db.delete_job(id).await?;
            Ok(Answer::json(json!({})))
        }
        [id, action @ ("pause" | "resume" | "cancel" | "complete")] => {
            call.only(&[Method::POST])?;
            find(call, id)?;
            let report = match *action {
                "pause" => call.db.pause_job(id).await?,
                "resume" => call.db.resume_job(id).await?,
                "cancel" => call.db.cancel_job(id).await?,
                _ => call.db.complete_job(id).await?,
            };
            Ok(Answer::json(show(&report)))
        }
        _ => Err(no_such_path()),
    }
}

/// A new job as its owner describes it; which properties there are depends on the kind.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
enum Wanted {
    Copy(CopyRequest),
    Rekey(RekeyRequest),
}

async fn create(call: &Call<'_>) -> Result<Answer, Denial> {
    let report = match call.json()? {
        Wanted::Copy(request) => call.db.copy_container(request).await?,
        Wanted::Rekey(request) => call.db.rekey_container(request).await?,
    };
    Ok(Answer::json(show(&report)).with_status(StatusCode::CREATED))
}

fn find(call: &Call<'_>, id: &str) -> Result<JobReport, Denial> {
    call.db.job(id).ok_or_else(|| not_found(format!("There is no job {id}.")))
}

fn show(report: &JobReport) -> Value {
    let job = &report.job;
    let name = |name: &ContainerName| json!({"database": name.database, "container": name.container});
    let phase = match report.phase {
        JobPhase::Copying => "copying",
        JobPhase::Following => "following",
        JobPhase::Over => "over",
    };
    let mut shown = json!({
        "id": job.id,
        "kind": if job.kind == JobKind::Copy { "copy" } else { "rekey" },
        "mode": if job.mode == JobMode::Offline { "offline" } else { "online" },
        "state": job.state,
        "phase": phase,
        "source": name(&job.source_name),
        "target": name(&job.target_name),
        "rateLimit": job.rate,
        "completesItself": job.completes_itself,
        "created": job.created,
        "ended": job.ended,
        "percent": (report.percent * 10.0).round() / 10.0,
        "itemsTotal": report.items_total,
        "itemsCopied": report.items_copied,
        "changesApplied": report.changes_applied,
        "changesPending": report.changes_pending,
        "itemsPerSecond": report.rate.round(),
        "secondsRemaining": report.seconds_remaining,
    });
    let collisions = &job.progress.collisions;
    if collisions.count > 0 {
        shown["collisions"] = json!({"count": collisions.count, "examples": collisions.examples});
    }
    if let Some(failure) = &job.failure {
        shown["failure"] = json!(failure);
    }
    if let Some(cut_over) = &job.cut_over {
        shown["cutOver"] = json!(cut_over);
    }
    shown
}

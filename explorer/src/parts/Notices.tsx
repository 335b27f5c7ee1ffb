import { dismiss, notices } from "../state/notices.ts";

/** What happened, in the corner of the page; screen readers say it. */
export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map((notice) => (
        <div key={notice.number} class={`notice ${notice.kind}`} data-notice={notice.kind}>
          <div>
            <strong>{notice.text}</strong>
            {notice.detail !== "" && <p>{notice.detail}</p>}
          </div>
          {notice.kind === "failed" && (
            <button type="button" class="quiet" aria-label="Dismiss" onClick={() => dismiss(notice.number)}>
              ×
            </button>
          )}
        </div>
      ))}
    </div>
  );
}

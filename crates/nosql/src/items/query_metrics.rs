//! What a page of a query cost in time and in items, in the service's form.

use std::fmt::Write as _;
use std::time::Duration;

use http::HeaderValue;

/// What clients may ask to know about the work of a page.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueryMetrics {
    pub total: Duration,
    pub compile: Duration,
    /// Time in which it was found out where the query runs and whether it can be answered there.
    pub plan: Duration,
    /// Time in which the index was read.
    pub index_lookup: Duration,
    /// Time in which items were read.
    pub load: Duration,
    /// Items read, and their bytes.
    pub loaded: (u64, u64),
    pub rows: usize,
    pub bytes: usize,
    /// Time in which the rows became text.
    pub write: Duration,
}

impl QueryMetrics {
    /// Names and values with `;` between them. Times that are not taken apart here are zero; what took any time at all is
    /// not shown as nothing.
    pub fn render(&self) -> HeaderValue {
        let run = self.total.saturating_sub(self.compile + self.plan);
        let zero = Duration::ZERO;
        let mut text = String::with_capacity(512);
        for (name, time) in [
            ("totalExecution", self.total),
            ("queryCompile", self.compile),
            ("queryLogicalPlanBuild", self.plan),
            ("queryPhysicalPlanBuild", zero),
            ("queryOptimization", zero),
            ("VMExecution", run),
            ("indexLookup", self.index_lookup),
            ("documentLoad", self.load),
            ("systemFunctionExecute", zero),
            ("userFunctionExecute", zero),
        ] {
            write!(text, "{name}TimeInMs={:.2};", milliseconds(time))
                .expect("writing to a string cannot fail");
        }
        let ((items, loaded), rows, bytes) = (self.loaded, self.rows, self.bytes);
        // The share of what was read that was also wanted; an answer from the index alone wastes nothing.
        let used = if items == 0 { 1.0 } else { (rows as f64 / items as f64).min(1.0) };
        write!(
            text,
            "retrievedDocumentCount={items};retrievedDocumentSize={loaded};outputDocumentCount={rows};\
             outputDocumentSize={bytes};writeOutputTimeInMs={:.2};indexUtilizationRatio={used:.2}",
            milliseconds(self.write)
        )
        .expect("writing to a string cannot fail");
        HeaderValue::from_str(&text).expect("numbers and names are ASCII")
    }
}

/// Two decimals are shown, so hundredths that have begun count.
fn milliseconds(time: Duration) -> f64 {
    time.as_nanos().div_ceil(10_000) as f64 / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_the_form_that_clients_cut() {
        let metrics = QueryMetrics {
            total: Duration::from_micros(1_500),
            compile: Duration::from_micros(250),
            plan: Duration::from_nanos(1),
            index_lookup: Duration::from_micros(100),
            load: Duration::from_micros(200),
            loaded: (6, 600),
            rows: 3,
            bytes: 90,
            write: Duration::from_micros(11),
        }
        .render();
        let text = metrics.to_str().expect("ASCII");
        assert_eq!(text.split(';').count(), 16);
        for pair in text.split(';') {
            let (name, value) = pair.split_once('=').expect("a pair");
            assert!(value.parse::<f64>().is_ok(), "{name}");
        }
        let start =
            "totalExecutionTimeInMs=1.50;queryCompileTimeInMs=0.25;queryLogicalPlanBuildTimeInMs=0.01;";
        assert!(text.starts_with(start), "{text}");
        assert!(text.contains(";writeOutputTimeInMs=0.02;"), "{text}");
        assert!(
            text.contains(";VMExecutionTimeInMs=1.25;indexLookupTimeInMs=0.10;documentLoadTimeInMs=0.20;")
        );
        assert!(
            text.contains(";retrievedDocumentCount=6;retrievedDocumentSize=600;outputDocumentCount=3;"),
            "{text}"
        );
        assert!(text.ends_with(";indexUtilizationRatio=0.50"), "{text}");
    }

    #[test]
    fn an_answer_from_the_index_alone_wastes_nothing() {
        let metrics = QueryMetrics { rows: 1, bytes: 2, ..QueryMetrics::default() }.render();
        let text = metrics.to_str().expect("ASCII");
        assert!(text.contains(";retrievedDocumentCount=0;retrievedDocumentSize=0;"), "{text}");
        assert!(text.ends_with(";indexUtilizationRatio=1.00"), "{text}");
    }
}

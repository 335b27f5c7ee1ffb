//! Whether the server tells a collector of OpenTelemetry what it does, and how.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use http::Uri;

use super::units;

#[derive(Args, Clone, Debug)]
pub struct OtlpOptions {
    /// A collector of OpenTelemetry that gets traces and metrics by OTLP over HTTP (JSON): the URL below which `/v1/traces`
    /// and `/v1/metrics` lie, such as http://localhost:4318. Without it nothing is collected.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL", value_parser = collector)]
    otlp_endpoint: Option<Collector>,

    /// Headers for the collector, such as those by which it knows its clients: `name=value`, separated by commas.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_HEADERS", value_name = "HEADERS", hide_env_values = true, value_parser = header,
          value_delimiter = ',')]
    otlp_headers: Vec<Header>,

    /// The authority that signs the collector's certificate, in PEM; by default those that the machine trusts.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_CERTIFICATE", value_name = "FILE")]
    otlp_ca_file: Option<PathBuf>,

    /// What this server is called in traces and metrics.
    #[arg(long, env = "OTEL_SERVICE_NAME", value_name = "NAME", default_value = SERVICE)]
    otlp_service_name: String,

    /// The share of requests that are traced, from 0 to 1, where clients do not say it themselves with `traceparent`.
    #[arg(long, env = "ORRERY_OTLP_SAMPLE", value_name = "SHARE", default_value = "1", value_parser = share)]
    pub otlp_sample: f64,

    /// How often metrics are sent, in seconds.
    #[arg(long, env = "ORRERY_OTLP_METRICS_SECONDS", value_name = "S", default_value = "30", value_parser = units::seconds)]
    pub otlp_metrics_seconds: Duration,
}

/// Variables of OpenTelemetry that are empty count as if they were not set, as its specification wants it.
impl OtlpOptions {
    pub fn collector(&self) -> Option<Uri> {
        self.otlp_endpoint.clone()?.0
    }

    pub fn headers(&self) -> Vec<(String, String)> {
        self.otlp_headers.iter().filter_map(|header| header.0.clone()).collect()
    }

    pub fn ca_file(&self) -> Option<PathBuf> {
        self.otlp_ca_file.clone().filter(|file| !file.as_os_str().is_empty())
    }

    pub fn service_name(&self) -> String {
        let name = self.otlp_service_name.trim();
        if name.is_empty() { SERVICE.to_owned() } else { name.to_owned() }
    }
}

const SERVICE: &str = "orrery";

#[derive(Clone, Debug, PartialEq, Eq)]
struct Collector(Option<Uri>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Header(Option<(String, String)>);

/// Behind it comes `/v1/…`, with one slash.
fn collector(text: &str) -> Result<Collector, String> {
    if text.trim().is_empty() {
        return Ok(Collector(None));
    }
    let uri: Uri = text.trim_end_matches('/').parse().map_err(|_| "that is no URL".to_owned())?;
    match (uri.scheme_str(), uri.host(), uri.query()) {
        (Some("http" | "https"), Some(_), None) => Ok(Collector(Some(uri))),
        _ => Err("name it as http://HOST:PORT, or https".to_owned()),
    }
}

fn header(text: &str) -> Result<Header, String> {
    if text.trim().is_empty() {
        return Ok(Header(None));
    }
    let (name, value) = text.split_once('=').ok_or("name it as NAME=VALUE")?;
    let value = percent_encoding::percent_decode_str(value.trim()).decode_utf8();
    let value = value.map_err(|_| "the value is no text".to_owned())?.into_owned();
    let name = name.trim().to_ascii_lowercase();
    let is_right =
        http::HeaderName::from_bytes(name.as_bytes()).is_ok() && http::HeaderValue::from_str(&value).is_ok();
    if is_right { Ok(Header(Some((name, value)))) } else { Err("that is no header of HTTP".to_owned()) }
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number from 0 to 1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_collector_needs_is_checked_when_the_server_starts() {
        let path = |text: &str| collector(text).map(|found| found.0.map(|uri| uri.path().to_owned()));
        assert_eq!(path("http://c:4318/"), Ok(Some("/".into())));
        assert_eq!(path("https://c/otlp/"), Ok(Some("/otlp".into())));
        assert_eq!(path(" "), Ok(None), "an empty variable is none");
        for wrong in ["c:4318", "grpc://c:4317", "http://c/?a=b", "http://"] {
            assert!(collector(wrong).is_err(), "{wrong}");
        }
        assert_eq!(header("Api-Key=a%20b=c"), Ok(Header(Some(("api-key".into(), "a b=c".into())))));
        assert_eq!(header(""), Ok(Header(None)));
        for wrong in ["a", "a b=c", "a=%0a"] {
            assert!(header(wrong).is_err(), "{wrong}");
        }
        assert_eq!(share("0.25"), Ok(0.25));
        for wrong in ["-1", "1.5", "NaN", "x"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}

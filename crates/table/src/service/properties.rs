//! `StorageServiceProperties`: what is logged and measured, and which pages of other origins may ask.
//!
//! The sections about logs and measurements are kept and told; nothing is written because of them, since the server has
//! logs and metrics of its own.

use crate::errors::Own;
use crate::limits::{CORS_RULES_BYTES_MAX, CORS_RULES_MAX, RETENTION_DAYS_MAX};
use crate::service::cors::Rule;
use crate::xml::Element;

/// The sections that a client has set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Properties {
    logging: Option<Element>,
    hour_metrics: Option<Element>,
    minute_metrics: Option<Element>,
    cors: Option<Element>,
}

impl Properties {
    pub fn read(root: &Element) -> Result<Properties, Own> {
        let mut read = Properties::default();
        if root.name != "StorageServiceProperties" {
            return Err(Own::InvalidXml);
        }
        for section in &root.children {
            let place = match section.name.as_str() {
                "Logging" => {
                    check_section(section, &["Delete", "Read", "Write"])?;
                    &mut read.logging
                }
                "HourMetrics" | "Metrics" => {
                    check_section(section, &["Enabled"])?;
                    &mut read.hour_metrics
                }
                "MinuteMetrics" => {
                    check_section(section, &["Enabled"])?;
                    &mut read.minute_metrics
                }
                "Cors" => {
                    check_rules(section)?;
                    &mut read.cors
                }
                _ => return Err(Own::InvalidXml),
            };
            *place = Some(section.clone());
        }
        Ok(read)
    }

    /// What was set, as it is stored.
    pub fn element(&self) -> Element {
        let sections = [&self.logging, &self.hour_metrics, &self.minute_metrics, &self.cors];
        Element::of("StorageServiceProperties", sections.into_iter().flatten().cloned().collect())
    }

    /// All sections, as they are told.
    pub fn whole(&self) -> Element {
        let metrics = |set: &Option<Element>, name: &str| {
            let unset =
                || Element::of(name, vec![text("Version", "1.0"), text("Enabled", "false"), unlimited()]);
            set.as_ref().map_or_else(unset, |set| Element { name: name.to_owned(), ..set.clone() })
        };
        let logging = || {
            let switches = ["Delete", "Read", "Write"].map(|name| text(name, "false"));
            let parts = [text("Version", "1.0")].into_iter().chain(switches).chain([unlimited()]);
            Element::of("Logging", parts.collect())
        };
        let sections = vec![
            self.logging.clone().unwrap_or_else(logging),
            metrics(&self.hour_metrics, "HourMetrics"),
            metrics(&self.minute_metrics, "MinuteMetrics"),
            self.cors.clone().unwrap_or_else(|| Element::of("Cors", Vec::new())),
        ];
        Element::of("StorageServiceProperties", sections)
    }

    pub fn replaced_by(self, newer: Properties) -> Properties {
        Properties {
            logging: newer.logging.or(self.logging),
            hour_metrics: newer.hour_metrics.or(self.hour_metrics),
            minute_metrics: newer.minute_metrics.or(self.minute_metrics),
            cors: newer.cors.or(self.cors),
        }
    }

    /// The rules for browsers, in the order in which they are asked.
    pub fn rules(&self) -> Vec<Rule> {
        let rules = self.cors.iter().flat_map(|cors| &cors.children);
        rules.filter_map(|rule| Rule::read(rule).ok()).collect()
    }
}

fn text(name: &str, value: &str) -> Element {
    Element::of_text(name, value)
}

fn unlimited() -> Element {
    Element::of("RetentionPolicy", vec![text("Enabled", "false")])
}

/// Checks the switches of a section, and for how long what it asks for is to be kept.
fn check_section(section: &Element, switches: &[&str]) -> Result<(), Own> {
    if section.text_of("Version").is_empty() {
        return Err(Own::InvalidXml);
    }
    for name in switches {
        is_on(section, name)?;
    }
    let Some(retention) = section.child("RetentionPolicy") else { return Ok(()) };
    if is_on(retention, "Enabled")? {
        let days = retention.text_of("Days").parse::<u32>().map_err(|_| Own::InvalidXmlValue)?;
        if !(1..=RETENTION_DAYS_MAX).contains(&days) {
            return Err(Own::InvalidXmlValue);
        }
    }
    Ok(())
}

fn is_on(element: &Element, name: &str) -> Result<bool, Own> {
    match element.text_of(name) {
        text if text.eq_ignore_ascii_case("true") => Ok(true),
        text if text.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err(Own::InvalidXmlValue),
    }
}

fn check_rules(cors: &Element) -> Result<(), Own> {
    let mut written = String::new();
    cors.write(&mut written);
    if cors.children.len() > CORS_RULES_MAX || written.len() > CORS_RULES_BYTES_MAX {
        return Err(Own::InvalidXmlValue);
    }
    cors.children.iter().try_for_each(|rule| Rule::read(rule).map(|_| ()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml;

    fn read(sections: &str) -> Result<Properties, Own> {
        let text = format!("<StorageServiceProperties>{sections}</StorageServiceProperties>");
        Properties::read(&xml::parse(text.as_bytes())?)
    }

    const LOGGING: &str = "<Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>true</Write>\
        <RetentionPolicy><Enabled>true</Enabled><Days>5</Days></RetentionPolicy></Logging>";
    const RULE: &str = "<CorsRule><AllowedOrigins>http://a.example,http://b.example</AllowedOrigins>\
        <AllowedMethods>GET,PUT</AllowedMethods><AllowedHeaders>x-ms-*</AllowedHeaders><ExposedHeaders />\
        <MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule>";

    #[test]
    fn sections_that_are_left_out_stay_as_they_are() {
        let logging = read(LOGGING).expect("a section");
        let both = logging.clone().replaced_by(read(&format!("<Cors>{RULE}</Cors>")).expect("a rule"));
        assert_eq!(both.logging, logging.logging);
        assert_eq!(both.rules().len(), 1);
        let stored = xml::parse(both.element().document().as_bytes()).expect("XML");
        assert_eq!(Properties::read(&stored).ok(), Some(both.clone()));
        let without = both.replaced_by(read("<Cors />").expect("no rules"));
        assert!(without.rules().is_empty());
        let names: Vec<_> = without.whole().children.into_iter().map(|section| section.name).collect();
        assert_eq!(names, ["Logging", "HourMetrics", "MinuteMetrics", "Cors"]);
    }

    #[test]
    fn wrong_properties_are_refused() {
        for (sections, wanted) in [
            ("<Else />".to_owned(), "xml"),
            ("<Logging />".to_owned(), "xml"),
            (LOGGING.replace("<Read>false</Read>", ""), "value"),
            (LOGGING.replace("<Days>5</Days>", ""), "value"),
            (LOGGING.replace(">5<", ">366<"), "value"),
            (LOGGING.replace(">5<", ">0<"), "value"),
            (format!("<Cors>{}</Cors>", RULE.repeat(6)), "value"),
            (format!("<Cors>{}</Cors>", RULE.replace("GET", "FLY")), "value"),
            (format!("<Cors>{}</Cors>", RULE.replace(">60<", ">-1<")), "value"),
            (format!("<Cors>{}</Cors>", RULE.replace("http://a", &"x".repeat(3_000))), "value"),
        ] {
            let is_right = match read(&sections) {
                Err(Own::InvalidXml) => wanted == "xml",
                Err(Own::InvalidXmlValue) => wanted == "value",
                _ => false,
            };
            assert!(is_right, "{sections}");
        }
    }
}

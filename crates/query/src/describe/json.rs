//! The plan as the service sends it.

use super::{DistinctType, QueryInfo, QueryPlan, Ranking};
use crate::ast::Direction;
use crate::print::quote;

impl QueryPlan {
    /// The body of the answer to a plan request.
    pub fn to_json(&self) -> String {
        let mut out = String::from("{\"partitionedQueryExecutionInfoVersion\":2,");
        match &self.ranking {
            None => {
                out.push_str("\"queryInfo\":");
                self.info.write_json(&mut out);
            }
            Some(ranking) => {
                out.push_str("\"hybridSearchQueryInfo\":");
                ranking.write_json(&mut out);
            }
        }
        out.push_str(",\"queryRanges\":");
        list(&mut out, &self.ranges, |out, range| {
            out.push_str("{\"min\":");
            quote(&range.min, out);
            out.push_str(",\"max\":");
            quote(&range.max, out);
            let (min, max) = (range.is_min_inclusive, range.is_max_inclusive);
            out.push_str(&format!(",\"isMinInclusive\":{min},\"isMaxInclusive\":{max}}}"));
        });
        out.push('}');
        out
    }
}

impl Ranking {
    fn write_json(&self, out: &mut String) {
        out.push_str("{\"globalStatisticsQuery\":");
        quote(&self.statistics_query, out);
        out.push_str(",\"componentQueryInfos\":");
        list(out, &self.components, |out, info| info.write_json(out));
        out.push_str(
            ",\"componentWithoutPayloadQueryInfos\":[],\"projectionQueryInfo\":null,\"componentWeights\":",
        );
        list(out, &self.weights, |out, weight| out.push_str(&weight.to_string()));
        for (name, count) in [("skip", self.skip), ("take", self.take)] {
            let count = count.map_or_else(|| "null".to_owned(), |count| count.to_string());
            out.push_str(&format!(",\"{name}\":{count}"));
        }
        out.push_str(&format!(",\"requiresGlobalStatistics\":{}}}", self.needs_statistics));
    }
}

impl QueryInfo {
    fn write_json(&self, out: &mut String) {
        out.push_str("{\"distinctType\":");
        quote(
            match self.distinct {
                DistinctType::None => "None",
                DistinctType::Ordered => "Ordered",
                DistinctType::Unordered => "Unordered",
            },
            out,
        );
        for (name, count) in [("top", self.top), ("offset", self.offset), ("limit", self.limit)] {
            let count = count.map_or_else(|| "null".to_owned(), |count| count.to_string());
            out.push_str(&format!(",\"{name}\":{count}"));
        }
        out.push_str(",\"orderBy\":");
        list(out, &self.order_by, |out, (direction, _)| {
            out.push_str(match direction {
                Direction::Ascending => "\"Ascending\"",
                Direction::Descending => "\"Descending\"",
            });
        });
        out.push_str(",\"orderByExpressions\":");
        list(out, &self.order_by, |out, (_, expression)| quote(expression, out));
        out.push_str(",\"groupByExpressions\":");
        list(out, &self.group_by_expressions, |out, expression| quote(expression, out));
        out.push_str(",\"groupByAliases\":");
        list(out, &self.group_by_aliases, |out, (alias, _)| quote(alias, out));
        out.push_str(",\"aggregates\":");
        list(out, &self.aggregates, |out, kind| quote(kind.plan_name(), out));
        out.push_str(",\"groupByAliasToAggregateType\":{");
        for (i, (alias, kind)) in self.group_by_aliases.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            quote(alias, out);
            out.push(':');
            match kind {
                Some(kind) => quote(kind.plan_name(), out),
                None => out.push_str("null"),
            }
        }
        out.push_str("},\"rewrittenQuery\":");
        quote(&self.rewritten_query, out);
        out.push_str(&format!(",\"hasSelectValue\":{},\"dCountInfo\":", self.has_select_value));
        match &self.distinct_count {
            None => out.push_str("null"),
            Some(alias) => {
                out.push_str("{\"dCountAlias\":");
                quote(alias, out);
                out.push('}');
            }
        }
        out.push_str(&format!(",\"hasNonStreamingOrderBy\":{}}}", self.has_non_streaming_order_by));
    }
}

fn list<T>(out: &mut String, items: &[T], write: impl Fn(&mut String, &T)) {
    out.push('[');
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

package scenario;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static scenario.Server.FOUR_PARTITIONS;
import static scenario.Server.item;
import static scenario.Server.refused;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class QueriesTest extends Scenario {
    private static final int COUNT = 60;
    private CosmosContainer items;

    @BeforeAll
    void fill() {
        items = Server.container(database, "queries", FOUR_PARTITIONS);
        assertEquals(4, items.getFeedRanges().size());
        for (int n = 0; n < COUNT; n++) {
            items.createItem(item("i%02d".formatted(n), "p" + n % 12).put("n", n).put("even", n % 2 == 0));
        }
    }

    private List<String> rows(SqlQuerySpec query, CosmosQueryRequestOptions options) {
        return items.queryItems(query, options, JsonNode.class).stream().map(JsonNode::toString).toList();
    }

    private List<String> rows(String query) {
        return rows(new SqlQuerySpec(query), new CosmosQueryRequestOptions());
    }

    private double number(String query) {
        List<String> rows = rows(query);
        assertEquals(1, rows.size());
        return Double.parseDouble(rows.get(0));
    }

    /** All pages; each comes from a new query that goes on with the continuation of the one before. */
    private List<String> resumed(String query, int size) {
        List<String> rows = new ArrayList<>();
        String continuation = null;
        for (int pages = 0; pages < 10 * COUNT; pages++) {
            FeedResponse<JsonNode> page = items
                .queryItems(query, new CosmosQueryRequestOptions(), JsonNode.class)
                .iterableByPage(continuation, size).iterator().next();
            assertTrue(page.getResults().size() <= size);
            page.getResults().forEach(row -> rows.add(row.toString()));
            continuation = page.getContinuationToken();
            if (continuation == null) {
                return rows;
            }
        }
        throw new AssertionError("pages without end: " + query);
    }

    private static List<String> numbers(IntStream numbers) {
        return numbers.mapToObj(Integer::toString).toList();
    }

    @Test
    void filtersAndParameters() {
        SqlQuerySpec query = new SqlQuerySpec(
            "SELECT VALUE c.n FROM c WHERE c.n >= @least AND c.even",
            List.of(new SqlParameter("@least", 50)));
        assertEquals(
            List.of("50", "52", "54", "56", "58"), rows(query, new CosmosQueryRequestOptions()).stream().sorted().toList());
        CosmosQueryRequestOptions one = new CosmosQueryRequestOptions().setPartitionKey(new PartitionKey("p2"));
        assertEquals(List.of("50"), rows(query, one));
        refused(400, () -> rows("SELECT FROM"));
    }

    @Test
    void adviceComesWithTheFirstPage() {
        CosmosQueryRequestOptions options = new CosmosQueryRequestOptions().setPartitionKey(new PartitionKey("p2"));
        String query = "SELECT * FROM c WHERE CONTAINS(c.id, '0')";
        String advice = items.queryItems(query, options.setQueryAdviceEnabled(true), JsonNode.class)
            .iterableByPage().iterator().next().getQueryAdvice();
        assertTrue(advice != null && advice.contains("QA1002"), advice);
    }

    @Test
    void ordersOverAllPartitions() {
        assertEquals(numbers(IntStream.range(0, COUNT)), rows("SELECT VALUE c.n FROM c ORDER BY c.n"));
        assertEquals(List.of("59", "58", "57"), rows("SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC"));
        assertEquals(List.of("10", "11"), rows("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 2"));
    }

    @Test
    void aggregatesOverAllPartitions() {
        assertEquals(60, number("SELECT VALUE COUNT(1) FROM c"));
        assertEquals(1770, number("SELECT VALUE SUM(c.n) FROM c"));
        assertEquals(29.5, number("SELECT VALUE AVG(c.n) FROM c"));
        assertEquals(59, number("SELECT VALUE MAX(c.n) FROM c"));
        assertEquals(
            List.of("{\"k\":30,\"even\":false}", "{\"k\":30,\"even\":true}"),
            rows("SELECT COUNT(1) AS k, c.even FROM c GROUP BY c.even").stream().sorted().toList());
        assertEquals(List.of("false", "true"), rows("SELECT DISTINCT VALUE c.even FROM c").stream().sorted().toList());
    }

    @Test
    void pagesAreResumedByNewQueries() {
        for (int size : new int[] {1, 7, 100}) {
            List<String> plain = resumed("SELECT VALUE c.n FROM c WHERE c.n < 40", size);
            assertEquals(numbers(IntStream.range(0, 40)),
                plain.stream().map(Integer::parseInt).sorted().map(n -> n.toString()).toList());
        }
        assertEquals(COUNT, items.readAllItems(new PartitionKey("p1"), JsonNode.class).stream().count() * 12);
    }
}

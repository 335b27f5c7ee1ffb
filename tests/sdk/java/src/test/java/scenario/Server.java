package scenario;

import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.Locale;
import java.util.UUID;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.function.Executable;

/** How the scenarios reach the server: one endpoint, key and mode from the environment. */
final class Server {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    static final int FOUR_PARTITIONS = 24_000;

    private Server() {}

    static CosmosClientBuilder builder() {
        CosmosClientBuilder builder = new CosmosClientBuilder()
            .endpoint(required("ORRERY_ENDPOINT"))
            .consistencyLevel(ConsistencyLevel.SESSION)
            .contentResponseOnWriteEnabled(true);
        // Direct mode is what the builder does when nothing is said, with five seconds for an answer.
        return "direct".equals(System.getenv("ORRERY_MODE")) ? builder : builder.gatewayMode();
    }

    static CosmosClient connect() {
        return builder().key(required("ORRERY_KEY")).buildClient();
    }

    static CosmosAsyncClient connectAsync() {
        return builder().key(required("ORRERY_KEY")).buildAsyncClient();
    }

    static String required(String name) {
        String value = System.getenv(name);
        Assertions.assertNotNull(value, name + " is not set; run tests/sdk/run.sh");
        return value;
    }

    static String unique() {
        return "java-" + UUID.randomUUID();
    }

    static CosmosContainer container(CosmosDatabase database, String id, int throughput) {
        return container(database, new CosmosContainerProperties(id, "/pk"), throughput);
    }

    static CosmosContainer container(CosmosDatabase database, CosmosContainerProperties properties, int throughput) {
        database.createContainer(properties, ThroughputProperties.createManualThroughput(throughput));
        return database.getContainer(properties.getId());
    }

    static ObjectNode item(String id, String pk) {
        return MAPPER.createObjectNode().put("id", id).put("pk", pk);
    }

    /** Runs what must fail with this status. */
    static CosmosException refused(int status, Executable what) {
        CosmosException refusal = Assertions.assertThrows(CosmosException.class, what);
        Assertions.assertEquals(status, refusal.getStatusCode(), refusal.getMessage());
        return refusal;
    }

    /** A page that anybody may read. */
    static String page(String path) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create(required("ORRERY_ENDPOINT") + path)).build();
        return HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body();
    }

    /** A request to the management API, which no SDK knows. */
    static JsonNode manage(String verb, String path, String body) throws IOException, InterruptedException {
        String link = "_orrery/" + path;
        String date = DateTimeFormatter.ofPattern("EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.US)
            .format(ZonedDateTime.now(ZoneOffset.UTC));
        String text = (verb + "\norrery\n").toLowerCase(Locale.ROOT) + link + "\n" + date.toLowerCase(Locale.ROOT) + "\n\n";
        String token = "type=master&ver=1.0&sig=" + signature(text);
        HttpRequest.BodyPublisher publisher =
            body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body);
        HttpRequest request = HttpRequest.newBuilder(URI.create(required("ORRERY_ENDPOINT") + link))
            .method(verb, publisher)
            .header("x-ms-date", date)
            .header("content-type", "application/json")
            .header("authorization", URLEncoder.encode(token, StandardCharsets.UTF_8))
            .build();
        HttpResponse<String> answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        Assertions.assertTrue(answer.statusCode() < 300, answer.body());
        return MAPPER.readTree(answer.body());
    }

    private static String signature(String text) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(Base64.getDecoder().decode(required("ORRERY_KEY")), "HmacSHA256"));
            return Base64.getEncoder().encodeToString(mac.doFinal(text.getBytes(StandardCharsets.UTF_8)));
        } catch (java.security.GeneralSecurityException error) {
            throw new AssertionError(error);
        }
    }
}

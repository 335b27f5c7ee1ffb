package scenario;

import com.azure.cosmos.ConsistencyLevel;
import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.DirectConnectionConfig;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.UUID;
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
        // Direct mode is what the builder does when nothing is said. It gives an answer five seconds, which is little where
        // compilers take the processors.
        DirectConnectionConfig patient =
            DirectConnectionConfig.getDefaultConfig().setNetworkRequestTimeout(Duration.ofSeconds(10));
        return "direct".equals(System.getenv("ORRERY_MODE")) ? builder.directMode(patient) : builder.gatewayMode();
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
}

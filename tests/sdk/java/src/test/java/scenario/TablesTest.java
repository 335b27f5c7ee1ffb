package scenario;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static scenario.Server.required;

import com.azure.core.credential.AzureNamedKeyCredential;
import com.azure.core.exception.HttpResponseException;
import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableClientBuilder;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.ListTablesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableServiceException;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import com.azure.data.tables.models.TableTransactionFailedException;
import com.azure.data.tables.sas.TableSasPermission;
import com.azure.data.tables.sas.TableSasSignatureValues;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.function.Executable;

/** The Table API with azure-data-tables. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class TablesTest {
    private final String name = "java" + UUID.randomUUID().toString().replace("-", "");
    private TableServiceClient service;
    private TableClient table;

    @BeforeAll
    void open() {
        service = new TableServiceClientBuilder()
            .endpoint(required("ORRERY_TABLES"))
            .credential(new AzureNamedKeyCredential("orrery", required("ORRERY_KEY")))
            .buildClient();
        table = service.createTable(name);
    }

    @AfterAll
    void close() {
        table.deleteTable();
    }

    private static TableEntity entity(String partition, String row, Map<String, Object> properties) {
        TableEntity entity = new TableEntity(partition, row);
        properties.forEach(entity::addProperty);
        return entity;
    }

    /** The properties of an entity, without its key, its version and what describes it. */
    private Map<String, Object> stored(String partition, String row) {
        Map<String, Object> properties = table.getEntity(partition, row).getProperties();
        properties.keySet().removeAll(List.of("PartitionKey", "RowKey", "Timestamp"));
        properties.keySet().removeIf(property -> property.contains("odata."));
        return properties;
    }

    private static void refused(int status, String code, Executable what) {
        TableServiceException refusal = assertThrows(TableServiceException.class, what);
        assertEquals(status, refusal.getResponse().getStatusCode(), refusal.getMessage());
        assertEquals(code, refusal.getValue().getErrorCode().toString(), refusal.getMessage());
    }

    private List<String> rows(String filter) {
        ListEntitiesOptions options = new ListEntitiesOptions().setFilter(filter).setTop(2);
        List<String> found = new ArrayList<>();
        table.listEntities(options, null, Context.NONE).iterableByPage().forEach(page -> {
            assertTrue(page.getValue().size() <= 2);
            page.getValue().forEach(row -> found.add(row.getPartitionKey() + row.getRowKey()));
        });
        return found;
    }

    @Test
    void tablesAreMadeListedAndDeleted() {
        String other = name + "other";
        service.createTable(other);
        refused(409, "TableAlreadyExists", () -> service.createTable(other));
        ListTablesOptions named = new ListTablesOptions().setFilter("TableName eq '" + other + "'");
        assertEquals(1, service.listTables(named, null, Context.NONE).stream().count());
        service.deleteTable(other);
        assertEquals(0, service.listTables(named, null, Context.NONE).stream().count());
    }

    @Test
    void valuesOfAllTypesComeBackAsTheyWent() {
        Map<String, Object> properties = Map.of(
            "text", "it's \"ü\"",
            "number", 5,
            "whole", 5.0,
            "huge", 1e300,
            "long", -(1L << 40),
            "flag", false,
            "when", OffsetDateTime.parse("2024-02-29T12:34:56.789123400Z"),
            "guid", UUID.fromString("c9da6455-213d-42c9-9a79-3e9149a57833"),
            "id", "mine");
        byte[] bytes = {0, -1};
        table.createEntity(entity("values", "it's", properties).addProperty("bytes", bytes));
        refused(409, "EntityAlreadyExists", () -> table.createEntity(new TableEntity("values", "it's")));
        Map<String, Object> read = stored("values", "it's");
        assertArrayEquals(bytes, (byte[]) read.remove("bytes"));
        assertEquals(properties, read);
    }

    @Test
    void changesMergeOrReplaceAndInsistOnVersions() {
        table.createEntity(entity("changes", "r", Map.of("a", 1, "b", 2)));
        TableEntity first = table.getEntity("changes", "r");
        table.updateEntity(entity("changes", "r", Map.of("b", 3, "c", 4)), TableEntityUpdateMode.MERGE);
        assertEquals(Map.of("a", 1, "b", 3, "c", 4), stored("changes", "r"));
        table.updateEntity(entity("changes", "r", Map.of("d", 5)), TableEntityUpdateMode.REPLACE);
        assertEquals(Map.of("d", 5), stored("changes", "r"));
        refused(412, "UpdateConditionNotSatisfied", () -> table.updateEntityWithResponse(
            first, TableEntityUpdateMode.REPLACE, true, null, Context.NONE));
        refused(412, "UpdateConditionNotSatisfied", () -> table.deleteEntityWithResponse(first, true, null, Context.NONE));
        TableEntity current = table.getEntity("changes", "r");
        assertNotEquals(first.getETag(), current.getETag());
        table.updateEntityWithResponse(
            current.addProperty("e", 6), TableEntityUpdateMode.REPLACE, true, null, Context.NONE);
        assertEquals(Map.of("d", 5, "e", 6), stored("changes", "r"));
        refused(404, "ResourceNotFound", () -> table.updateEntity(new TableEntity("changes", "none")));
        table.upsertEntity(entity("changes", "new", Map.of("a", 1)));
        table.upsertEntity(entity("changes", "new", Map.of("b", 2)));
        assertEquals(Map.of("a", 1, "b", 2), stored("changes", "new"));
        table.deleteEntity("changes", "new");
        refused(404, "ResourceNotFound", () -> table.getEntity("changes", "new"));
    }

    @Test
    void queriesFilterAndGoOnWhereAPageEnds() {
        for (String partition : List.of("qc", "qa", "qb")) {
            for (int row : List.of(2, 1, 3)) {
                Map<String, Object> values = Map.of("n", row, "long", (row - 2L) << 40);
                table.createEntity(entity(partition, String.valueOf(row), values));
            }
        }
        String all = "PartitionKey ge 'q' and PartitionKey lt 'r' and ";
        assertEquals(List.of("qb2", "qb3"), rows("PartitionKey eq 'qb' and RowKey gt '1'"));
        assertEquals(List.of("qa1", "qb1", "qc1"), rows(all + "long lt 0L"));
        assertEquals(List.of("qa3", "qc3"), rows(all + "not (n le 2) and (PartitionKey ne 'qb' or n eq 2)"));
        assertEquals(9, rows(all + "Timestamp gt datetime'2024-01-01T00:00:00Z'").size());
        HttpResponseException refusal = assertThrows(HttpResponseException.class, () -> rows("aaa bbb"));
        assertEquals(400, refusal.getResponse().getStatusCode(), refusal.getMessage());
    }

    @Test
    void batchesHappenWholeOrNotAtAll() {
        table.createEntity(new TableEntity("batch", "gone"));
        List<TableTransactionAction> actions = new ArrayList<>(IntStream.range(10, 30)
            .mapToObj(row -> action(TableTransactionActionType.CREATE, entity("batch", "" + row, Map.of("n", row))))
            .toList());
        actions.add(action(TableTransactionActionType.DELETE, new TableEntity("batch", "gone")));
        table.submitTransaction(actions);
        assertEquals(20, rows("PartitionKey eq 'batch'").size());
        TableTransactionFailedException refusal = assertThrows(
            TableTransactionFailedException.class,
            () -> table.submitTransaction(List.of(
                action(TableTransactionActionType.CREATE, new TableEntity("batch", "never")),
                action(TableTransactionActionType.CREATE, new TableEntity("batch", "10")))));
        assertEquals(1, refusal.getFailedTransactionActionIndex());
        refused(404, "ResourceNotFound", () -> table.getEntity("batch", "never"));
    }

    private static TableTransactionAction action(TableTransactionActionType type, TableEntity entity) {
        return new TableTransactionAction(type, entity);
    }

    @Test
    void signaturesOpenWhatTheyShould() {
        table.createEntity(entity("signed", "r", Map.of("a", 1)));
        String token = table.generateSas(new TableSasSignatureValues(
            OffsetDateTime.now().plusHours(1), new TableSasPermission().setReadPermission(true)));
        TableClient reader = new TableClientBuilder()
            .endpoint(required("ORRERY_TABLES")).sasToken(token).tableName(name).buildClient();
        assertEquals(1, reader.getEntity("signed", "r").getProperty("a"));
        refused(403, "AuthorizationPermissionMismatch", () -> reader.createEntity(new TableEntity("signed", "s")));
        TableClient stranger = new TableClientBuilder()
            .endpoint(required("ORRERY_TABLES"))
            .credential(new AzureNamedKeyCredential("orrery", "AAECAwQFBgcICQoLDA0ODw=="))
            .tableName(name).buildClient();
        refused(401, "Unauthorized", () -> stranger.getEntity("signed", "r"));
    }
}

import com.jayway.jsonpath.Configuration;
import com.jayway.jsonpath.JsonPath;
import com.jayway.jsonpath.spi.json.JsonProvider;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Answers what Jayway JsonPath makes of a path and a document: a line of JSON in, a line of JSON
 * out. Members of an answer: "refused", the exception when the path is compiled; else "definite",
 * and "value" or "failure", the exception of the evaluation; "message" with an exception.
 */
public class Oracle {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        JsonProvider json = Configuration.defaultConfiguration().jsonProvider();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<?, ?> pair = (Map<?, ?>) json.parse(line);
            out.println(json.toJson(answer((String) pair.get("path"), pair.get("document"))));
            out.flush();
        }
    }

    private static Map<String, Object> answer(String text, Object document) {
        Map<String, Object> answer = new LinkedHashMap<>();
        JsonPath path;
        try {
            path = JsonPath.compile(text);
        } catch (RuntimeException refusal) {
            answer.put("refused", refusal.getClass().getSimpleName());
            answer.put("message", refusal.getMessage());
            return answer;
        }
        answer.put("definite", path.isDefinite());
        try {
            answer.put("value", path.read(document));
        } catch (RuntimeException failure) {
            answer.put("failure", failure.getClass().getSimpleName());
            answer.put("message", failure.getMessage());
        }
        return answer;
    }
}

package sample.text;

import java.util.HashMap;
import java.util.Map;

public class Counter {
    private Map<String, Integer> counts = new HashMap<>();

    public void add(String word) {
        if (word == null || word.isEmpty()) {
            return;
        }
        counts.put(word, get(word) + 1);
    }

    public int get(String word) {
        Integer count = counts.get(word);
        return count == null ? 0 : count;
    }
}

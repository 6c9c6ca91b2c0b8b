class Search {
    static int find(int[] values, int wanted) {
        int low = 0;
        int high = values.length - 1;
        while (low <= high) {
            int middle = (low + high) / 2;
            if (values[middle] == wanted) {
                return middle;
            } else if (values[middle] < wanted) {
                low = middle + 1;
            } else {
                high = middle - 1;
            }
        }
        return -1;
    }

    static boolean contains(int[] values, int wanted) {
        return find(values, wanted) >= 0;
    }
}

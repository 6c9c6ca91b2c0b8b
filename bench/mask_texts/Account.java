public class Account {
    private String owner;
    private long cents;

    public Account(String owner) {
        this.owner = owner;
    }

    public synchronized void withdraw(long amount) throws IllegalStateException {
        if (amount > cents) {
            throw new IllegalStateException("Too little money: " + cents);
        }
        cents -= amount;
    }

    public String toString() {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < owner.length(); i++) {
            text.append(owner.charAt(i));
        }
        return text.append(": ").append(cents).toString();
    }
}

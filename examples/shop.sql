-- A shop's tables and questions: something to complete in.

CREATE TABLE customers (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    city TEXT NOT NULL
);

CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers (id),
    ordered_on DATE NOT NULL,
    total NUMERIC NOT NULL
);

-- The ten customers who spent the most, with what they spent.
SELECT customers.name, SUM(orders.total) AS spent
FROM customers
JOIN orders ON 
GROUP BY customers.name
ORDER BY spent DESC
LIMIT 10;

-- Customers who never ordered.
SELECT customers.name
FROM customers
LEFT JOIN orders ON orders.customer_id = customers.id
WHERE 

SELECT c.name, COUNT(o.id) AS orders, SUM(o.price * o.quantity) AS total
FROM customers AS c
LEFT JOIN orders AS o ON o.customer_id = c.id
WHERE o.placed_at >= '2024-01-01' AND c.country IN ('CH', 'DE', 'AT')
GROUP BY c.name
HAVING SUM(o.price) > 100
ORDER BY total DESC, c.name
LIMIT 20 OFFSET 40;
SELECT
    s.name,
    CASE WHEN s.score >= 90 THEN 'good' WHEN s.score >= 50 THEN 'fair' ELSE 'poor' END AS grade,
    CAST(s.score AS integer) AS points
FROM (SELECT name, score, term FROM results WHERE term BETWEEN 3 AND 5) AS s
WHERE s.name LIKE 'A%' AND s.score IS NOT NULL
ORDER BY points DESC;
SELECT DISTINCT p.id, p.email
FROM people AS p
INNER JOIN teams AS t ON t.lead_id = p.id
WHERE EXISTS (SELECT m.id FROM members AS m WHERE m.team_id = t.id)
UNION ALL
SELECT g.id, g.email
FROM guests AS g
WHERE g.email NOT LIKE '%@example.com' AND g.visits <> 1;
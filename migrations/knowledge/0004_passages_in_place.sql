-- A passage of the usual length stays in its row as it is. Compressing it cost more than a third of
-- storing it where the server has no lz4, and saved little: one passage is short. Longer rows, and
-- those that a vector makes longer, are still compressed and moved out of line.
ALTER TABLE private_knowledge.chunks SET (toast_tuple_target = 4096);

const PUT_BACK = `with replaced as (update audit_stream_deliveries
    set status = 'replaced', due_at = null, finished_at = now()
    where audit_stream_id = $1 and status = 'pending' and not is_test
    returning sequence, from_xid, from_id, first_at),
  first as (select * from replaced order by sequence limit 1)
  update audit_streams h set position_xid = f.from_xid, position_id = f.from_id, position_at = f.first_at,
    last_sequence = f.sequence - 1 from first f where h.id = $1`;

/** Puts the records that wait into deliveries again, as the stream is from then on. Its row is locked. */
export const putBack = (streamId: string) => ({ text: PUT_BACK, values: [streamId] });

package telemetry

import (
	"go.uber.org/zap/zapcore"

	"tool-search-proxy/internal/turn"
)

// auditCalls writes the calls of an audited request to the log.
type auditCalls []turn.AuditCall

// MarshalLogArray implements zapcore.ArrayMarshaler.
func (calls auditCalls) MarshalLogArray(out zapcore.ArrayEncoder) error {
	for _, c := range calls {
		err := out.AppendObject(zapcore.ObjectMarshalerFunc(func(o zapcore.ObjectEncoder) error {
			o.AddString("name", c.Name)
			o.AddBool("always_loaded", c.AlwaysLoaded)
			if !c.AlwaysLoaded {
				o.AddInt("rank_by_name", c.RankByName)
				o.AddInt("rank_by_words", c.RankByWords)
			}
			return nil
		}))
		if err != nil {
			return err
		}
	}
	return nil
}

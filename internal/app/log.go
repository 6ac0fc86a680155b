package app

import (
	"fmt"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"tool-search-proxy/internal/config"
)

// NewLog makes the logger that a configuration asks for. Its level can be changed while it runs.
func NewLog(c config.Log) (*zap.Logger, zap.AtomicLevel, error) {
	level, err := zap.ParseAtomicLevel(c.Level)
	if err != nil {
		return nil, level, fmt.Errorf("make the log: %w", err)
	}
	options := zap.NewProductionConfig()
	options.Level = level
	options.Sampling = nil // nothing is lost silently
	options.DisableCaller = true
	options.DisableStacktrace = true
	options.EncoderConfig.TimeKey = "time"
	options.EncoderConfig.MessageKey = "message"
	options.EncoderConfig.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	options.EncoderConfig.EncodeDuration = zapcore.StringDurationEncoder
	if c.Format == config.LogConsole {
		options.Encoding = "console"
		options.EncoderConfig.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		options.EncoderConfig.EncodeLevel = zapcore.CapitalLevelEncoder
	}
	log, err := options.Build()
	if err != nil {
		return nil, level, fmt.Errorf("make the log: %w", err)
	}
	return log, level, nil
}

package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/oncegate/oncegate/configs"
)

// lastSpans is how long the end of the process waits for a collector.
const lastSpans = 2 * time.Second

// openTracing makes the tracer that the parts get; nil without an endpoint, and
// then tracing costs nothing. A collector that is away loses spans: they wait in
// a queue of bounded length, and never does a request wait for them.
func (a *App) openTracing(ctx context.Context, cfg *configs.Config) (trace.Tracer, error) {
	if cfg.Tracing.Endpoint == "" {
		return nil, nil
	}
	endpoint, err := spansAddress(cfg.Tracing.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("tracing.endpoint: %w", err)
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint))
	if err != nil {
		return nil, fmt.Errorf("tracing.endpoint: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "oncegate"), attribute.String("service.version", readBuild().version)),
		resource.WithFromEnv(), // OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES
	)
	if err != nil {
		return nil, fmt.Errorf("describe this process to the collector: %w", err)
	}
	// What the exporter cannot tell its caller goes to a handler that is the
	// process's.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		a.log.WarnContext(context.WithoutCancel(ctx), "spans were lost", "error", err)
	}))
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithResource(about),
		sdktrace.WithSampler(sampler(cfg.Tracing.Sample)),
	)
	a.keep("tracer", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, lastSpans)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			a.log.WarnContext(ctx, "the last spans were lost", "error", err)
		}
		return nil
	})
	return provider.Tracer("github.com/oncegate/oncegate"), nil
}

// spansAddress completes the address of a collector with the path that OTLP
// gives to spans.
func spansAddress(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", err
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}

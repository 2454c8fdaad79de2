// SPDX-License-Identifier: Apache-2.0

// Package register owns how a kubelet gets to know the driver: it offers the service that the kubelet looks for in its
// folder of plugins, and says there where the CSI services are.
//
// It must not know what the CSI services do.
//
// It stands before the walk of every node call: a kubelet that was not told of the driver makes none.
package register

import (
	"context"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Plugin is what a kubelet is told.
type Plugin struct {
	// Name is that of the driver, and Endpoint the path of the socket with its CSI services.
	Name     string
	Endpoint string
	// Out hears what became of the registration.
	Out io.Writer
}

const (
	service = "pluginregistration.Registration"
	// kind and version are what a kubelet wants of CSI drivers.
	kind    = "CSIPlugin"
	version = "1.0.0"
)

// messages are those of the kubelet's plugin registration, version v1. They are few, and have not changed since they
// exist; describing them here spares the driver all that Kubernetes' own module brings.
type messages struct {
	info, request, status, response protoreflect.MessageDescriptor
}

func describe() (messages, error) {
	field := func(name string, number int32, of descriptorpb.FieldDescriptorProto_Type, isList bool) *descriptorpb.FieldDescriptorProto {
		label := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
		if isList {
			label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED
		}
		return &descriptorpb.FieldDescriptorProto{Name: &name, Number: &number, Type: &of, Label: &label}
	}
	message := func(name string, fields ...*descriptorpb.FieldDescriptorProto) *descriptorpb.DescriptorProto {
		return &descriptorpb.DescriptorProto{Name: &name, Field: fields}
	}
	const text, boolean = descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_BOOL
	name, pkg, syntax := "pluginregistration.proto", "pluginregistration", "proto3"
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: &name, Package: &pkg, Syntax: &syntax,
		MessageType: []*descriptorpb.DescriptorProto{
			message("PluginInfo", field("type", 1, text, false), field("name", 2, text, false), field("endpoint", 3, text, false), field("supported_versions", 4, text, true)),
			message("InfoRequest"),
			message("RegistrationStatus", field("plugin_registered", 1, boolean, false), field("error", 2, text, false)),
			message("RegistrationStatusResponse"),
		},
	}, nil)
	if err != nil {
		return messages{}, fmt.Errorf("describing the registration: %w", err)
	}
	of := func(i int) protoreflect.MessageDescriptor { return file.Messages().Get(i) }
	return messages{info: of(0), request: of(1), status: of(2), response: of(3)}, nil
}

// New makes the gRPC server for the socket that a kubelet finds.
func New(p Plugin) (*grpc.Server, error) {
	m, err := describe()
	if err != nil {
		return nil, err
	}
	g := grpc.NewServer()
	g.RegisterService(&grpc.ServiceDesc{
		ServiceName: service, HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{
			{MethodName: "GetInfo", Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				if err := decode(dynamicpb.NewMessage(m.request)); err != nil {
					return nil, err
				}
				return p.info(m), nil
			}},
			{MethodName: "NotifyRegistrationStatus", Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				status := dynamicpb.NewMessage(m.status)
				if err := decode(status); err != nil {
					return nil, err
				}
				p.hear(m, status)
				return dynamicpb.NewMessage(m.response), nil
			}},
		},
	}, p)
	return g, nil
}

func (p Plugin) info(m messages) *dynamicpb.Message {
	info, fields := dynamicpb.NewMessage(m.info), m.info.Fields()
	for i, text := range []string{kind, p.Name, p.Endpoint} {
		info.Set(fields.Get(i), protoreflect.ValueOfString(text))
	}
	info.Mutable(fields.Get(3)).List().Append(protoreflect.ValueOfString(version))
	return info
}

// hear repeats what the kubelet says. It tries again by itself, so a refusal does not end the driver.
func (p Plugin) hear(m messages, status *dynamicpb.Message) {
	if status.Get(m.status.Fields().Get(0)).Bool() {
		fmt.Fprintf(p.Out, "driver: a kubelet has registered %s at %s\n", p.Name, p.Endpoint)
		return
	}
	fmt.Fprintf(p.Out, "driver: a kubelet has refused %s at %s: %s\n", p.Name, p.Endpoint, status.Get(m.status.Fields().Get(1)).String())
}

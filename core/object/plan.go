package object

// CopyPlan says which replica to copy and where to. Targets is empty when every target already
// holds the object.
type CopyPlan struct {
	Source  ReplicaDescriptor
	Targets []ReplicaDescriptor
}

// MovePlan says which replica to move and where to. Target is nil when the target already holds
// the object: then the source only goes away.
type MovePlan struct {
	Source ReplicaDescriptor
	Target *ReplicaDescriptor
}
